"""Which failures of a job are the account's."""

from __future__ import annotations

from typing import Any

import pytest

from core.jobs import account_fault


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ("You have exceeded your credits limit.", "quota"),
        ({"message": "insufficient_quota: top up", "type": "x"}, "quota"),
        ({"code": "NO_MORE_CREDITS", "message": "x" * 50_000}, "quota"),
        ({"code": 402, "message": "payment"}, "quota"),
        ({"message": "Invalid API key"}, "key"),
        ("Research failed", None),
        ({"type": "SERVER_ERROR", "code": "TIMEOUT", "message": "The run exceeded its time limit."}, None),
        ({"code": "rate_limit_exceeded", "message": "too fast"}, None),
        ({"a": {"b": ["deep"]}}, None),
        (None, None),
        ("", None),
        ({}, None),
    ],
)
def test_whose_failure_it_is(said: Any, kind: str | None) -> None:
    found = account_fault("lab", said)
    assert (found.kind if found else None) == kind
    assert found is None or found.message.startswith("lab: ")
