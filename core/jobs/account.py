"""Failures of a job that are the account's and not the system's: they stop the run and are no score.

Several APIs answer 200 and say inside the job that it failed for want of credit. The job was the provider's to
end, but an empty account says nothing about the system: it is treated as the same words with a status of 402.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from core.errors import CallError
from core.reply import Reply, from_status

#: Characters of a failure's own words that are looked at.
_LOOKED_AT: Final = 4000


def account_fault(name: str, said: Any) -> CallError | None:
    """The error to raise where what a provider says of a failed job is that the key or the credit does not serve.

    `name` is the provider's; `said` is its error, an object or a text. None where the failure is the job's own.
    """
    if not said:
        return None
    fields = {"message": str(said)[:_LOOKED_AT]}
    if isinstance(said, Mapping):  # its words and codes; what it nests may be too deep to be written
        fields = {str(name): str(item)[:_LOOKED_AT] for name, item in said.items() if isinstance(item, (str, int))}
    content = json.dumps({"error": fields}).encode("utf-8", "replace")
    error = from_status(Reply(200, {}, content, 0.0, ""), 0.0)
    if not error.meaning.stops_run:
        return None
    words = error.message.partition(": ")[2] or error.message
    return CallError(error.kind, f"{name}: {words}", cost_usd=error.cost_usd)
