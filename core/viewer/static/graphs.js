// Graphs as the report draws them: one node takes the focus, arrows follow edges and layers, and the panel shows the
// node's checkpoints. The report's own script does the same for its page.

for (const graph of document.querySelectorAll(".graph")) {
  const nodes = new Map([...graph.querySelectorAll("g.node")].map((node) => [node.dataset.n, node]));
  const panel = graph.querySelector(".panel");
  const show = (node) => {
    for (const other of nodes.values()) {
      other.classList.toggle("on", other === node);
      other.tabIndex = other === node ? 0 : -1;
    }
    const copy = graph.querySelector(`tr[data-n="${CSS.escape(node.dataset.n)}"] details`).cloneNode(true);
    copy.open = true;
    panel.replaceChildren(copy);
  };
  for (const node of nodes.values()) {
    node.addEventListener("focus", () => show(node));
    node.addEventListener("click", () => node.focus());
    node.addEventListener("keydown", (event) => {
      const way = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "up", ArrowDown: "down" }[event.key];
      if (!way) return;
      event.preventDefault();
      const next = nodes.get(node.dataset[way]);
      if (next) next.focus();
    });
  }
}
