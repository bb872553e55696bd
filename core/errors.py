"""The one table of what each error means, and the exceptions that carry its names.

Everything that can go wrong with a call has a kind. The table says of each kind whether the call
may be made again (a judge's answer is cheap and may be asked twice; a system's job may not), whether
money may have been spent, whether the whole run must stop, and what the user should do.

    LeadlineError
    ├── InputError      configuration or input refused before anything was sent: exit 2
    ├── CallError       one call failed; carries a kind of the table
    └── StopRun         no further call makes sense (wrong key, no credit, budget): the run ends
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from core.model import Failure, Usage

Billed = Literal["no", "maybe", "yes"]


@dataclass(frozen=True, slots=True)
class Meaning:
    """What one kind of error means.

    `retry_judge` / `retry_system`: may the call be made again for a judge / for a system's job.
    `refusal`: the server asked us to slow down, so the limiter cuts.
    `stored`: the provider's own word, kept and not asked again unless `retry=failed`.
    `status`: the submission status it gives when a system's call ends this way.
    """

    advice: str
    retry_judge: bool = False
    retry_system: bool = False
    billed: Billed = "no"
    refusal: bool = False
    stops_run: bool = False
    stored: bool = False
    status: str = "error"


TABLE: Final[Mapping[str, Meaning]] = MappingProxyType(
    {
        # before anything reached the server
        "connect": Meaning(
            "could not connect: check base_url, network and proxy",
            retry_judge=True,
            retry_system=True,
        ),
        "name": Meaning(
            "the host name does not resolve: check base_url and DNS",
            retry_judge=True,
            retry_system=True,
        ),
        "tls": Meaning("the TLS handshake failed: check certificates and the clock"),
        "bad_url": Meaning("the address is not a usable http(s) URL: check base_url"),
        # the request was or may have been read
        "timeout": Meaning(
            "no answer within timeout_s: raise it, or lower max_in_flight",
            retry_judge=True,
            billed="maybe",
        ),
        "hung_up": Meaning(
            "the server read the request and hung up: it may have been billed",
            retry_judge=True,
            billed="maybe",
        ),
        "cut": Meaning("the answer broke off: it was probably billed", retry_judge=True, billed="maybe"),
        # the server's answer
        "rate_limit": Meaning(
            "the provider limits requests: lower max_in_flight or requests_per_minute",
            retry_judge=True,
            retry_system=True,
            refusal=True,
        ),
        "overloaded": Meaning(
            "the provider is overloaded: run again later, what is done is kept",
            retry_judge=True,
            retry_system=True,
            refusal=True,
        ),
        "server": Meaning(
            "the provider answered 5xx: run again later, what is done is kept",
            retry_judge=True,
            retry_system=True,
        ),
        "gateway_timeout": Meaning(
            "a gateway gave up waiting for the provider, which may be at work: it may have been billed",
            retry_judge=True,
            billed="maybe",
        ),
        "key": Meaning(
            "the API key is missing, wrong or lacks a permission: set the variable that api_key_env names",
            stops_run=True,
        ),
        "quota": Meaning("no credit or quota is left: top up, then run again", stops_run=True),
        "bad_request": Meaning("the provider refused the request's form: check model, effort and params"),
        "not_found": Meaning("the endpoint or model does not exist: check base_url and model"),
        "too_large": Meaning("the request is larger than the provider takes"),
        "redirect": Meaning("the server redirects: set base_url to the address it names"),
        # the content of an answer
        "empty": Meaning("the answer has no text", retry_judge=True, billed="yes", status="empty"),
        "malformed": Meaning(
            "the answer is not what was asked for: see raw; try structured=true or another model",
            retry_judge=True,
            billed="yes",
        ),
        "truncated": Meaning(
            "the answer was cut at max_output_tokens: raise it, thinking shares it",
            retry_judge=True,
            billed="yes",
            status="incomplete",
        ),
        "refused": Meaning("the model or its filter refused", billed="yes", stored=True, status="refused"),
        "failed": Meaning("the provider says the job failed", billed="maybe", stored=True, status="failed"),
        "timed_out": Meaning(
            "the deadline passed before the job ended", billed="maybe", stored=True, status="timed_out"
        ),
        "maybe_billed": Meaning(
            "a job was sent and cannot be found again: it may have been billed and is not sent twice; look in the "
            "provider's console, and retry=failed sends it again",
            billed="maybe",
        ),
        "unreachable": Meaning(
            "the job runs at the provider, which could not be asked about it: run the same command again; "
            "nothing is sent or paid twice",
            billed="maybe",
        ),
        "given_up": Meaning(
            "a call inside the attempt failed for good: run again to try the attempt anew", billed="maybe"
        ),
        "tied": Meaning(
            "the members of the ensemble are split evenly: name an odd number of them, or another vote",
            billed="yes",
        ),
        # ours
        "budget": Meaning("budget.usd is spent: raise it and run again to go on", stops_run=True),
        "interrupted": Meaning("run the same command again, with out= naming this folder, to go on"),
        "not_recorded": Meaning("the recorded file has no verdict here"),
        "page": Meaning("the page could not be seen, so the record is unverified: see the page's status"),
        "crash": Meaning("an exception in an agent, a plugin or Leadline itself: the traceback is in log.jsonl"),
    }
)


def meaning(kind: str) -> Meaning:
    """The meaning of a kind; a kind that the table does not know is a bug of ours: `crash`."""
    return TABLE.get(kind, TABLE["crash"])


def place(path: object, line: int | None = None, field: str | None = None) -> str:
    """Where in a file something stands, as every refusal says it: `path, line 3, field answer.id`."""
    parts = [str(path)]
    parts += [f"line {line}"] if line is not None else []
    parts += [f"field {field}"] if field else []
    return ", ".join(parts)


class LeadlineError(Exception):
    """Base of every error that Leadline raises on purpose."""


class InputError(LeadlineError):
    """Configuration or input that is refused, before anything is sent. Ends with exit code 2.

    `where` is the place (file, line, field), `expected` what was wanted, `got` what came.
    """

    def __init__(
        self, message: str, *, where: str | None = None, expected: str | None = None, got: str | None = None
    ) -> None:
        self.where, self.expected, self.got = where, expected, got
        parts = [f"{where}: {message}" if where else message]
        if expected is not None:
            parts.append(f"expected {expected}")
        if got is not None:
            parts.append(f"got {got}")
        super().__init__("; ".join(parts))


class CallError(LeadlineError):
    """One call that failed, with its kind, and what the reply said about when to try again.

    `retry_after_s`: seconds the server asked us to wait. `http_status`: the answer's status, where there was one.
    `usage`, `cost_usd`, `raw`, `model`: what is known of a reply that was billed and could not be used. `partial`:
    of a malformed answer, what is usable by itself (Question.exact); None where nothing is. `crowded`: a refusal
    that says that too much runs at once, not that requests come too fast.
    """

    def __init__(
        self,
        kind: str,
        message: str = "",
        *,
        retry_after_s: float | None = None,
        request_id: str | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
        raw: str | None = None,
        model: str | None = None,
        partial: Mapping[str, Any] | None = None,
        http_status: int | None = None,
        crowded: bool = False,
    ) -> None:
        if kind not in TABLE:
            raise ValueError(f"unknown error kind {kind!r}; known: {', '.join(sorted(TABLE))}")
        self.kind = kind
        self.retry_after_s, self.request_id = retry_after_s, request_id
        self.usage, self.cost_usd, self.raw, self.model = usage, cost_usd, raw, model
        self.partial = partial
        self.http_status, self.crowded = http_status, crowded
        self.message = message or TABLE[kind].advice
        super().__init__(f"{kind}: {self.message}")

    @property
    def meaning(self) -> Meaning:
        return TABLE[self.kind]

    def failure(self) -> Failure:
        """The error as a field of a row."""
        from core.model import Failure

        suffix = f" (request {self.request_id})" if self.request_id else ""
        return Failure(kind=self.kind, message=self.message + suffix)


def cost_of(error: CallError) -> float | None:
    """What a failed call cost in dollars: nothing where nothing was read, else what is known of it."""
    return 0.0 if error.cost_usd is None and error.meaning.billed == "no" else error.cost_usd


class StopRun(LeadlineError):
    """The whole run ends at once, cleanly: what was done is kept, the rest is missing."""

    def __init__(self, kind: str, message: str = "") -> None:
        self.kind = kind
        self.message = message or meaning(kind).advice
        super().__init__(f"{kind}: {self.message}")
