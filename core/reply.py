"""What a server's answer means: its status and body become a kind of the error table.

Providers say the same thing in different words: an empty account is 402, 429 `insufficient_quota`, 401
"quota", 400 "credit balance is too low", 432 or a per-day violation inside a 429. `from_status` reads all of
them, `retry_hint` reads when to try again. Both are pure; core/http.py makes the replies.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

from core.errors import CallError

#: Characters of a provider's own message that an error keeps.
MESSAGE_LIMIT: Final = 400

_REQUEST_ID_HEADERS: Final = (
    "x-request-id",
    "request-id",
    "x-amzn-requestid",
    "x-ms-request-id",
    "cf-ray",
)
_TAG: Final = re.compile(r"<(script|style|head)\b.*?</\1\s*>|<[^<>]*>", re.DOTALL | re.IGNORECASE)
_TITLE: Final = re.compile(r"<title[^>]*>(.*?)</title", re.DOTALL | re.IGNORECASE)

_QUOTA: Final = re.compile(
    r"insufficient[_ ](quota|credit|balance|funds)|credit[_ ]balance|billing|no_more_credits|budget_exceeded"
    r"|out of credits?|credits?[_ ]limit|(exceeded|exhausted) your (current )?(quota|credit)"
    r"|payment[_ ]required|usage limit|spend(ing)?[_ ](cap|limit)|per[_ -]?day|daily",
    re.IGNORECASE,
)
#: A quota that comes back within minutes is a rate limit, however the message calls it.
_SHORT_WINDOW: Final = re.compile(r"per[_ -]?(minute|second)", re.IGNORECASE)
_KEY: Final = re.compile(
    r"api[_ ]?key[_ ]?(invalid|not valid|expired|not found)"
    r"|(invalid|incorrect|missing|expired)[_ ]api[_ ]?key|invalid_api_key"
    r"|authentication_error|unauthenticated",
    re.IGNORECASE,
)
_TOO_LONG: Final = re.compile(
    r"context_length_exceeded|maximum context length|context window|prompt is too long|request_too_large"
    r"|string_above_max_length",
    re.IGNORECASE,
)
_FILTERED: Final = re.compile(r"content_filter|responsibleaipolicy|content management policy", re.IGNORECASE)
_OVERLOADED: Final = re.compile(r"overloaded|\"?unavailable\"?|capacity|try again later", re.IGNORECASE)
_RATE: Final = re.compile(r"rate[_ ]?limit|too many requests|resource_exhausted|concurrency", re.IGNORECASE)
_CROWDED: Final = re.compile(
    r"concurren|simultaneous|in[_ -]parallel|too many (active|running|open)"
    r"|active (agent )?(runs|jobs|tasks|sessions)",
    re.IGNORECASE,
)
_BAD: Final = re.compile(r"invalid_request|bad_request|invalid_argument|unsupported", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of a server, whatever its status.

    `headers` are looked up without regard to case; `content` is the decoded body; `latency_s` runs from the
    request to the last byte; `url` is the address that was asked.
    """

    status: int
    headers: Mapping[str, str]
    content: bytes
    latency_s: float
    url: str

    @property
    def text(self) -> str:
        """The body as UTF-8; bytes that are not are replaced."""
        return self.content.decode("utf-8", "replace")

    @property
    def request_id(self) -> str | None:
        """What the provider calls this request, for its support desk."""
        for name in _REQUEST_ID_HEADERS:
            value = self.headers.get(name)
            if value:
                return value[:200]
        return None

    def json(self) -> Any:
        """The body as JSON; raises CallError `malformed` when it is not."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise CallError(
                "malformed",
                f"the body is not JSON: {shortened(self.text, 120) or 'it is empty'}",
                request_id=self.request_id,
                raw=self.text[:2000],
            ) from error


def from_status(reply: Reply, now: float) -> CallError:
    """The error that a reply stands for; `now` in seconds since 1970, for dates in headers.

    Meant for every status but 2xx, and for a 2xx whose body is an error: its `code` or its words decide then.
    """
    body = _parsed(reply)
    said = own_message(body) or shortened(_page_text(reply.text), MESSAGE_LIMIT)
    words = " ".join(_words(body)) if body is not None else said
    status = reply.status if reply.status >= 300 else _status_in(body, words)
    kind = _kind(status, words, reply.headers, body)
    if kind == "redirect":
        target = reply.headers.get("location", "").split("?", 1)[0]
        said = f"it points to {target}" if target else said
    message = f"the server answered {reply.status}" + (f": {said}" if said else "")
    return CallError(
        kind,
        message,
        retry_after_s=retry_hint(reply.headers, body, now),
        request_id=reply.request_id or _request_id_in(body),
        http_status=reply.status,
        crowded=kind == "rate_limit" and bool(_CROWDED.search(words)),
    )


def _kind(status: int, words: str, headers: Mapping[str, str], body: Any) -> str:
    """The kind of a status, given what the body says. The order of the questions is the rule."""
    if 300 <= status < 400:
        return "redirect"
    if status in (402, 432, 433):
        return "quota"
    if status in (401, 403):
        return "quota" if _QUOTA.search(words) else "key"
    if status == 429:
        return "quota" if _is_spent(words, headers, body) else "rate_limit"
    if status in (400, 422):
        return _kind_of_refused_form(words)
    if status in (404, 405, 410):
        return "not_found"
    if status in (413, 414, 431):
        return "too_large"
    if status in (408, 409, 425):
        return "server"
    if status in (504, 520, 522, 524, 598, 599):  # whoever stands behind the gateway was given the request
        return "gateway_timeout"
    if status == 529 or (status == 503 and (_OVERLOADED.search(words) or "retry-after" in headers)):
        return "overloaded"
    if status >= 500:
        return "overloaded" if _OVERLOADED.search(words) and "overload" in words.lower() else "server"
    return "bad_request"


def _kind_of_refused_form(words: str) -> str:
    for pattern, kind in ((_KEY, "key"), (_FILTERED, "refused"), (_TOO_LONG, "too_large")):
        if pattern.search(words):
            return kind
    # "billing" and "daily" are ordinary words of a validation message; a balance is not
    if re.search(r"credit[_ ]balance|insufficient[_ ](quota|credit|balance)|billing", words, re.IGNORECASE):
        return "quota"
    return "bad_request"


def _is_spent(words: str, headers: Mapping[str, str], body: Any) -> bool:
    """Is a 429 about an empty account rather than about speed?"""
    violations = [
        str(item.get("quotaId", ""))
        for detail in _details(body)
        for item in detail.get("violations") or ()
        if isinstance(item, Mapping)
    ]
    if any(violations):  # the message says "quota" for minutes and days alike, the id says which
        return any("perday" in name.lower() for name in violations)
    if re.search(r"insufficient_quota", words):
        return True
    if _is_anthropic_cap(headers, body):
        return True
    return bool(_QUOTA.search(words)) and not _SHORT_WINDOW.search(words)


def _is_anthropic_cap(headers: Mapping[str, str], body: Any) -> bool:
    """Anthropic's spend cap is a rate_limit_error without any word on when to try again."""
    error = body.get("error") if isinstance(body, Mapping) and body.get("type") == "error" else None
    if not isinstance(error, Mapping) or error.get("type") != "rate_limit_error":
        return False
    if "retry-after" in headers or "retry-after-ms" in headers:
        return False
    return not any(name.lower().startswith("anthropic-ratelimit-") for name in headers)


def _status_in(body: Any, words: str) -> int:
    """The status that an error inside a 2xx body stands for."""
    error = body.get("error") if isinstance(body, Mapping) else None
    code = error.get("code") if isinstance(error, Mapping) else None
    if isinstance(code, str) and code.isdigit():
        code = int(code)
    if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600:
        return code
    for pattern, status in ((_KEY, 401), (_QUOTA, 429), (_RATE, 429), (_BAD, 400)):
        if pattern.search(words):
            return status
    return 529 if "overload" in words.lower() else 500


def own_message(body: Any) -> str:
    """The provider's own message inside a JSON body, shortened; empty when there is none."""
    if isinstance(body, list) and body:  # Google wraps errors of streams in a list
        body = body[0]
    if isinstance(body, str):
        return shortened(body, MESSAGE_LIMIT)
    if not isinstance(body, Mapping):
        return ""
    error = body.get("error")
    if isinstance(error, Mapping):
        message = error.get("message") or error.get("detail") or error.get("type") or error.get("code")
    else:
        message = body.get("message") or error or body.get("detail") or body.get("errors")
    if isinstance(message, Mapping):
        message = message.get("error") or message.get("message") or json.dumps(message)
    if isinstance(message, (list, tuple)):
        message = json.dumps(message)
    return shortened(str(message), MESSAGE_LIMIT) if message else ""


def shortened(text: str, limit: int) -> str:
    """One line of at most `limit` characters, without control characters."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text[: limit * 4]).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def _page_text(text: str) -> str:
    """The words of an HTML page, or the text itself."""
    text = text[:8000]
    if "<" not in text:
        return text
    title = _TITLE.search(text)
    return (title[1] + " " if title else "") + _TAG.sub(" ", text)


def _parsed(reply: Reply) -> Any:
    try:
        return json.loads(reply.content)
    except (ValueError, RecursionError):
        return None


def _details(body: Any) -> Iterator[Mapping[str, Any]]:
    """The `error.details` of Google's errors."""
    if isinstance(body, list) and body:
        body = body[0]
    error = body.get("error") if isinstance(body, Mapping) else None
    details = error.get("details") if isinstance(error, Mapping) else None
    for detail in details if isinstance(details, list) else ():
        if isinstance(detail, Mapping):
            yield detail


def _words(body: Any) -> Iterator[str]:
    """What the kind is read from: messages, codes, types, reasons; never what was echoed of the input."""
    if isinstance(body, list) and body:
        body = body[0]
    if isinstance(body, str):
        yield body[:MESSAGE_LIMIT]
        return
    if not isinstance(body, Mapping):
        return
    places = [body, body.get("error"), body.get("detail"), *_details(body)]
    for place in places:
        if isinstance(place, str):
            yield place[:MESSAGE_LIMIT]
        elif isinstance(place, Mapping):
            for name in ("message", "code", "type", "tag", "status", "reason", "error"):
                value = place.get(name)
                if isinstance(value, str):
                    yield value[: 2 * MESSAGE_LIMIT]


def _request_id_in(body: Any) -> str | None:
    if isinstance(body, Mapping):
        for name in ("request_id", "requestId"):
            value = body.get(name)
            if isinstance(value, str):
                return value[:200]
    return None


# when to try again

_SPAN: Final = re.compile(r"(?:(\d+(?:\.\d+)?)(ms|h|m|s|d))")
_SPAN_WHOLE: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s|d))+")
_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def retry_hint(headers: Mapping[str, str], body: Any, now: float) -> float | None:
    """Seconds until the server wants to be asked again, from whichever place it says so; None if nowhere.

    Never negative; an absurd value is the caller's to cap. `headers` are looked up in lower case.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(0.0, milliseconds / 1000)
    after = headers.get("retry-after")
    if after:
        seconds = _number(after)
        seconds = _until_date(after, now) if seconds is None else seconds
        if seconds is not None:
            return max(0.0, seconds)
    for detail in _details(body):
        seconds = _span(detail.get("retryDelay"), now)
        if seconds is not None:
            return seconds
    if isinstance(body, Mapping):
        error = body.get("error")
        for place in (body, error if isinstance(error, Mapping) else {}):
            seconds = _span(place.get("retry_after"), now)
            if seconds is not None:
                return seconds
    return _reset(headers, now)


def _reset(headers: Mapping[str, str], now: float) -> float | None:
    """The latest reset among the limits that are used up.

    A reset of a limit that still has something left says nothing about the refusal.
    """
    found: list[float] = []
    for header, value in headers.items():
        name = header.lower()
        if name.startswith("anthropic-ratelimit-") and name.endswith("-reset"):
            if _number(headers.get(name.removesuffix("-reset") + "-remaining")) == 0:
                seconds = _until_date(value, now)
                if seconds is not None:
                    found.append(max(0.0, seconds))
        elif name.startswith("x-ratelimit-reset"):
            left = _number(headers.get(name.replace("reset", "remaining", 1)))
            seconds = _span(value, now)
            if seconds is not None and not left:
                found.append(seconds)
    return max(found, default=None)


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _span(value: Any, now: float) -> float | None:
    """A length of time in seconds: `1.2s`, `6m0s`, `20ms`, a number of seconds, or a moment since 1970."""
    number = _number(value)
    if number is not None:
        if number > 1e11:  # milliseconds since 1970
            number = number / 1000 - now
        elif number > 1e9:  # seconds since 1970
            number -= now
        return max(0.0, number)
    if not isinstance(value, str):
        return None
    text = value.strip().lower()
    if len(text) > 40:
        return None
    if _SPAN_WHOLE.fullmatch(text):
        return sum(float(amount) * _UNITS[unit] for amount, unit in _SPAN.findall(text))
    seconds = _until_date(value, now)
    return None if seconds is None else max(0.0, seconds)


def _until_date(value: str, now: float) -> float | None:
    """Seconds from now to an HTTP date or an ISO time."""
    for parse in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = parse(value.strip())
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return moment.timestamp() - now
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return None
