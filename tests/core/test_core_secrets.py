"""Keys are read by the name of their variable, and shown nowhere."""

from __future__ import annotations

import pytest

from core.errors import InputError
from core.secrets import HIDDEN, Keys

KEY = "k3y-51c2f0-secret"


@pytest.mark.parametrize(
    ("value", "fault"),
    [
        (KEY, None),
        (f"  {KEY}\n", None),
        ("", "is not set"),
        ("   ", "is not set"),
        ("two\nlines-of-a-key", "a line break or a letter"),
        ("schlüssel", "a line break or a letter"),
        ("tab\tinside", "a line break or a letter"),
    ],
)
def test_what_a_variable_must_hold(value: str, fault: str | None) -> None:
    keys = Keys({"A_KEY": value})
    found = keys.fault("A_KEY")
    assert (found is None) if fault is None else (found is not None and fault in found)
    assert value.strip() == "" or found is None or value.strip() not in found
    if fault is None:
        assert keys.get("A_KEY") == KEY
    else:
        with pytest.raises(InputError, match="A_KEY"):
            keys.get("A_KEY")


def test_no_variable_is_no_fault() -> None:
    assert Keys({}).fault(None) is None
    assert Keys({}).get(None) is None


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (f"a {KEY} b", f"a {HIDDEN} b"),
        ({"message": KEY}, {"message": HIDDEN}),
        ({KEY: 1, "b": [KEY, {"c": (KEY,)}]}, {HIDDEN: 1, "b": [HIDDEN, {"c": [HIDDEN]}]}),
        (None, None),
        (3, 3),
    ],
)
def test_a_key_is_taken_out_of_every_text_also_of_names(value: object, shown: object) -> None:
    keys = Keys({"A_KEY": KEY})
    keys.get("A_KEY")
    assert keys.stripped(value) == shown
    assert keys.redacted(value) == shown
