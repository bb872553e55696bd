"""JSON that no server should send, for tests that read replies: hypothesis strategies."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

#: Any value that a JSON parser of Python's gives: NaN, infinities and half surrogate pairs among them.
JSON: Final[st.SearchStrategy[Any]] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(codec=None)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn, tree: Any) -> Any:
    """The tree with something else in one place."""
    if not isinstance(tree, (dict, list)) or not tree or draw(st.integers(0, 5)) == 0:
        return draw(JSON)
    if isinstance(tree, list):
        place = draw(st.integers(0, len(tree) - 1))
        return [draw(mutated(one)) if number == place else one for number, one in enumerate(tree)]
    name = draw(st.sampled_from(sorted(tree)))
    return {**tree, name: draw(mutated(tree[name]))}


def replies(skeleton: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects: any, and the skeleton with something else in one place."""
    return (JSON | mutated(skeleton)).filter(lambda value: isinstance(value, dict))
