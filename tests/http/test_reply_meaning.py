"""What statuses and bodies mean, and when to try again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CallError
from core.reply import Reply, from_status, retry_hint

NOW = 1_800_000_000.0
SAMPLES = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "providers"


def reply(status: int, body: Any = None, **headers: str) -> Reply:
    content = body.encode() if isinstance(body, str) else b"" if body is None else json.dumps(body).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(status, httpx.Headers(named), content, 0.0, "http://x/")


def openai(message: str, code: str | None = None, kind: str | None = None) -> dict[str, Any]:
    return {"error": {"message": message, "type": kind or code, "param": None, "code": code}}


def google(code: int, message: str, status: str, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": message, "status": status, "details": list(details)}}


def violation(name: str) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{"quotaId": name}]}


ANTHROPIC_LIMIT = {"type": "error", "error": {"type": "rate_limit_error", "message": "over the limit"}}


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(reply(302, location="http://y/"), "redirect", id="302"),
        pytest.param(reply(400, openai("no such parameter")), "bad_request", id="400"),
        pytest.param(reply(400, openai("maximum context length is 8192 tokens")), "too_large", id="400 context"),
        pytest.param(reply(400, openai("x", "context_length_exceeded")), "too_large", id="400 context code"),
        pytest.param(reply(400, openai("x", "content_filter")), "refused", id="400 content filter"),
        pytest.param(reply(400, openai("Your credit balance is too low")), "quota", id="400 credit balance"),
        pytest.param(
            reply(400, google(400, "API key not valid.", "INVALID_ARGUMENT", {"reason": "API_KEY_INVALID"})),
            "key",
            id="400 invalid key",
        ),
        pytest.param(reply(400, {"error": {"message": "daily is no unit"}}), "bad_request", id="400 daily"),
        pytest.param(reply(401, openai("Incorrect API key")), "key", id="401"),
        pytest.param(reply(401, openai("exceeded your current quota")), "quota", id="401 quota"),
        pytest.param(reply(402), "quota", id="402"),
        pytest.param(reply(403, "<html><title>Forbidden</title></html>"), "key", id="403 page"),
        pytest.param(reply(403, {"error": "insufficient credits"}), "quota", id="403 credits"),
        pytest.param(reply(404, openai("no such model")), "not_found", id="404"),
        pytest.param(reply(405), "not_found", id="405"),
        pytest.param(reply(408), "server", id="408"),
        pytest.param(reply(409), "server", id="409"),
        pytest.param(reply(413), "too_large", id="413"),
        pytest.param(reply(418), "bad_request", id="418"),
        pytest.param(reply(422, {"detail": [{"msg": "wrong"}]}), "bad_request", id="422"),
        pytest.param(reply(425), "server", id="425"),
        pytest.param(reply(429), "rate_limit", id="429 bare"),
        pytest.param(reply(429, openai("Rate limit reached", "rate_limit_exceeded")), "rate_limit", id="429"),
        pytest.param(reply(429, openai("quota", "insufficient_quota")), "quota", id="429 insufficient_quota"),
        pytest.param(reply(429, openai("check your plan and billing details")), "quota", id="429 billing"),
        pytest.param(reply(429, openai("tokens per day (TPD): limit 100")), "quota", id="429 per day"),
        pytest.param(
            reply(429, openai("Quota exceeded: requests per minute, see billing")),
            "rate_limit",
            id="429 per minute",
        ),
        pytest.param(
            reply(429, google(429, "You exceeded your current quota", "X", violation("RequestsPerDayPerProject"))),
            "quota",
            id="429 Google day",
        ),
        pytest.param(
            reply(429, google(429, "You exceeded your current quota", "X", violation("RequestsPerMinute"))),
            "rate_limit",
            id="429 Google minute",
        ),
        pytest.param(reply(429, ANTHROPIC_LIMIT, retry_after="3"), "rate_limit", id="429 Anthropic"),
        pytest.param(reply(429, ANTHROPIC_LIMIT), "quota", id="429 Anthropic spend cap"),
        pytest.param(reply(432), "quota", id="432"),
        pytest.param(reply(433), "quota", id="433"),
        pytest.param(reply(500, openai("oops")), "server", id="500"),
        pytest.param(reply(500, openai("The engine is currently overloaded")), "overloaded", id="500 overloaded"),
        pytest.param(reply(502, "<html>Bad gateway</html>"), "server", id="502"),
        pytest.param(reply(503), "server", id="503"),
        pytest.param(reply(503, openai("overloaded")), "overloaded", id="503 overloaded"),
        pytest.param(reply(503, retry_after="5"), "overloaded", id="503 Retry-After"),
        pytest.param(reply(529), "overloaded", id="529"),
        pytest.param(reply(200, {"error": {"code": 429, "message": "upstream"}}), "rate_limit", id="200 code"),
        pytest.param(reply(200, {"error": {"code": "502", "message": "x"}}), "server", id="200 code as text"),
        pytest.param(reply(200, openai("Invalid API key", "invalid_api_key")), "key", id="200 key"),
        pytest.param(reply(200, openai("x", "insufficient_quota")), "quota", id="200 quota"),
        pytest.param(reply(200, openai("x", "invalid_request_error")), "bad_request", id="200 bad request"),
        pytest.param(reply(200, {"error": "something broke"}), "server", id="200 unknown"),
    ],
)
def test_kind(answer: Reply, kind: str) -> None:
    assert from_status(answer, NOW).kind == kind


SAMPLE_KINDS = {
    "anthropic/90_err_400": "quota",
    "exa/90_err_400_schema": "bad_request",
    "gemini/91_err_400_key": "key",
    "gemini/92_err_429_quota": "quota",
    "gemini/93_err_403_get": "key",
    "openai/92_err_429_quota": "quota",
    "perplexity/92_err_401_quota": "quota",
    "tavily/92_err_432": "quota",
}
BY_STATUS = {
    400: "bad_request",
    401: "key",
    402: "quota",
    403: "key",
    404: "not_found",
    422: "bad_request",
    429: "rate_limit",
    500: "server",
    502: "server",
    503: "overloaded",
    529: "overloaded",
}


def samples() -> list[Any]:
    found = sorted(SAMPLES.glob("*/9*_err_*.json"))
    missing = pytest.mark.skip(reason=f"no recorded exchanges in {SAMPLES}")
    return [pytest.param(path, id=f"{path.parent.name}/{path.stem}") for path in found] or [
        pytest.param(SAMPLES, marks=missing)
    ]


@pytest.mark.parametrize("path", samples())
def test_recorded_errors(path: Path) -> None:
    exchange = json.loads(path.read_text())["response"]
    body = exchange.get("json", exchange.get("body"))
    answer = Reply(exchange["status"], httpx.Headers(exchange["headers"]), json.dumps(body).encode(), 0.0, "")
    error = from_status(answer, NOW)
    expected = SAMPLE_KINDS.get(f"{path.parent.name}/{path.stem}") or BY_STATUS[exchange["status"]]
    assert error.kind == expected
    assert str(exchange["status"]) in error.message
    # the provider's own sentence is in it, not the braces around it
    assert "{" not in error.message or "detail" in json.dumps(body)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        pytest.param(reply(500, openai("It broke.")), "the server answered 500: It broke.", id="OpenAI"),
        pytest.param(
            reply(500, {"detail": {"error": "It broke."}}), "the server answered 500: It broke.", id="detail"
        ),
        pytest.param(
            reply(402, {"error": "payment_required", "message": "No credit."}),
            "the server answered 402: No credit.",
            id="message beside a code",
        ),
        pytest.param(
            reply(502, "<html><head><title>502 Bad Gateway</title><style>x{}</style></head><h1>nginx</h1></html>"),
            "the server answered 502: 502 Bad Gateway nginx",
            id="page",
        ),
        pytest.param(reply(500), "the server answered 500", id="nothing"),
        pytest.param(
            reply(302, location="https://a.example/v2?key=1"),
            "the server answered 302: it points to https://a.example/v2",
            id="redirect",
        ),
    ],
)
def test_message(answer: Reply, message: str) -> None:
    assert from_status(answer, NOW).message == message


def test_a_long_message_is_shortened_to_one_line() -> None:
    message = from_status(reply(500, openai("a\nb\x1b[31m" + "x" * 5000)), NOW).message
    assert len(message) < 450
    assert message.isprintable()


def test_request_ids() -> None:
    assert from_status(reply(500, x_request_id="req_1"), NOW).request_id == "req_1"
    assert from_status(reply(500, {"requestId": "req_2"}), NOW).request_id == "req_2"


def test_a_body_that_is_not_json_is_malformed() -> None:
    with pytest.raises(CallError) as caught:
        reply(200, "<html>hello</html>").json()
    assert caught.value.kind == "malformed"


@pytest.mark.parametrize(
    ("headers", "body", "seconds"),
    [
        pytest.param({}, None, None, id="nothing"),
        pytest.param({"retry-after": "12"}, None, 12, id="seconds"),
        pytest.param({"retry-after": "0"}, None, 0, id="now"),
        pytest.param({"retry-after": "-5"}, None, 0, id="negative"),
        pytest.param({"retry-after": "1.5"}, None, 1.5, id="a fraction"),
        pytest.param({"retry-after": "Fri, 15 Jan 2027 08:00:30 GMT"}, None, 30, id="HTTP date"),
        pytest.param({"retry-after": "Fri, 15 Jan 2027 07:00:00 GMT"}, None, 0, id="HTTP date past"),
        pytest.param({"retry-after": "soon"}, None, None, id="a word"),
        pytest.param({"retry-after": "nan"}, None, None, id="nan"),
        pytest.param({"retry-after": "inf"}, None, None, id="inf"),
        pytest.param({"retry-after": "9", "retry-after-ms": "1200"}, None, 1.2, id="milliseconds first"),
        pytest.param({"x-ratelimit-reset-requests": "1s"}, None, 1, id="reset 1s"),
        pytest.param({"x-ratelimit-reset-tokens": "6m0s"}, None, 360, id="reset 6m0s"),
        pytest.param({"x-ratelimit-reset-tokens": "20ms"}, None, 0.02, id="reset 20ms"),
        pytest.param({"x-ratelimit-reset-requests": str(int(NOW) + 7)}, None, 7, id="reset epoch"),
        pytest.param({"x-ratelimit-reset": str((int(NOW) + 7) * 1000)}, None, 7, id="reset epoch in ms"),
        pytest.param(
            {
                "x-ratelimit-reset-requests": "60s",
                "x-ratelimit-remaining-requests": "10",
                "x-ratelimit-reset-tokens": "2s",
                "x-ratelimit-remaining-tokens": "0",
            },
            None,
            2,
            id="only what is used up",
        ),
        pytest.param(
            {
                "anthropic-ratelimit-requests-reset": "2027-01-15T08:00:20Z",
                "anthropic-ratelimit-requests-remaining": "0",
                "anthropic-ratelimit-tokens-reset": "2027-01-15T09:00:00Z",
                "anthropic-ratelimit-tokens-remaining": "100",
            },
            None,
            20,
            id="Anthropic",
        ),
        pytest.param({}, google(429, "x", "X", {"retryDelay": "37s"}), 37, id="Google"),
        pytest.param({}, google(429, "x", "X", {"retryDelay": "0.5s"}), 0.5, id="Google fraction"),
        pytest.param({}, {"retry_after": 30}, 30, id="body"),
        pytest.param({}, {"error": {"retry_after": "4"}}, 4, id="body of the error"),
        pytest.param({}, {"retry_after": [1]}, None, id="body nonsense"),
    ],
)
def test_retry_hint(headers: dict[str, str], body: Any, seconds: float | None) -> None:
    found = retry_hint(httpx.Headers(headers), body, NOW)
    assert found == (seconds if seconds is None else pytest.approx(seconds))


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "details", "code", "type", "retryDelay", "violations", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.integers(200, 599), JSON, st.dictionaries(st.sampled_from(["retry-after", "x-ratelimit-reset"]), st.text())
)
def test_whatever_a_server_says_is_some_kind_of_error(status: int, body: Any, headers: dict[str, str]) -> None:
    error = from_status(Reply(status, headers, json.dumps(body).encode(), 0.0, ""), NOW)
    assert isinstance(error, CallError)
    assert error.retry_after_s is None or error.retry_after_s >= 0


@pytest.mark.parametrize(
    ("status", "message", "kind", "crowded"),
    [
        (429, "Too many active agent runs (50).", "rate_limit", True),
        (429, "Concurrency limit reached", "rate_limit", True),
        (429, "Too many requests", "rate_limit", False),
        (429, "Rate limit reached for requests per minute", "rate_limit", False),
        (503, "too many open connections", "server", False),
        (504, "timed out", "gateway_timeout", False),
        (524, "a timeout occurred", "gateway_timeout", False),
    ],
)
def test_a_refusal_says_whether_too_much_runs_at_once(status: int, message: str, kind: str, crowded: bool) -> None:
    body = json.dumps({"error": {"message": message}}).encode()
    error = from_status(Reply(status, {}, body, 0.1, "http://x"), 0.0)
    assert (error.kind, error.crowded) == (kind, crowded)
