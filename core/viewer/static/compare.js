// The two runs that are chosen, as an address.
const form = document.getElementById("two");
const go = document.getElementById("go");
const chosen = () => { go.href = `/difference?${new URLSearchParams(new FormData(form))}`; };
form.addEventListener("input", chosen);
chosen();
