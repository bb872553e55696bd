"""Reading pages in processes that may die of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest
from fakes.pages import BABBLE, CRASH, ENVIRON, FAIL, HANG, READER, SCRIPTS, until

from core.pages.extraction import SMALL, Extraction
from core.pages.fetched import Fetched


def body(content: bytes, content_type: str = "text/html") -> Fetched:
    return Fetched(
        url="http://a.example/",
        status="ok",
        fetched_at=0,
        final_url="http://b.example/",
        content_type=content_type,
        charset="utf-8",
        body=content,
    )


Make = Callable[..., Extraction]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    made: list[Extraction] = []

    def build(*, at_home: int = 0, timeout_s: float = 60, workers: int = 1, trusted: bool = False) -> Extraction:
        made.append(
            Extraction(target=READER, at_home=at_home, timeout_s=timeout_s, workers=workers, trusted=trusted)
        )
        return made[-1]

    yield build
    for extraction in made:
        await extraction.aclose()


@pytest.mark.parametrize("at_home", [1, 0], ids=["in a thread", "in a worker"])
async def test_a_page_is_read(make: Make, at_home: int) -> None:
    found = await make(at_home=at_home).read(
        body("naïve \ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16").encode())
    )
    assert found["status"] == "ok"
    assert found["main_text"] == "naïve 😀"
    assert [tuple(pair) for pair in found["texts"]] == [("all", "naïve 😀"), ("url", "http://b.example/")]
    assert found["extractor_version"] == "fake 1"


@pytest.mark.parametrize("at_home", [2, 0], ids=["in a thread", "in a worker"])
async def test_what_a_reader_says_or_raises_is_a_status(make: Make, at_home: int) -> None:
    extraction = make(at_home=at_home)
    assert (await extraction.read(body(SCRIPTS)))["status"] == "empty_js"
    failed = await extraction.read(body(FAIL))
    assert failed["status"] == "unsupported_type"
    assert "not a page at all" in failed["message"]


@pytest.mark.parametrize(("content", "said"), [(CRASH, "ended"), (HANG, "longer than")], ids=["dies", "hangs"])
async def test_a_page_that_takes_its_reader_down_is_one_that_cannot_be_read(
    make: Make, content: bytes, said: str
) -> None:
    extraction = make(timeout_s=0.5 if content == HANG else 60)
    found = await extraction.read(body(content))
    assert found["status"] == "unsupported_type"
    assert said in found["message"]
    again = make() if content == HANG else extraction  # a worker needs longer than that to start
    assert (await again.read(body(b"next")))["main_text"] == "next"


async def test_what_a_parser_prints_stands_between_no_answers(make: Make) -> None:
    extraction = make()
    assert (await extraction.read(body(BABBLE)))["status"] == "ok"
    assert (await extraction.read(body(b"next")))["main_text"] == "next"


async def test_a_worker_is_kept_and_sees_no_key(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    extraction = make()
    assert "OPENAI" not in (await extraction.read(body(ENVIRON)))["main_text"]
    await extraction.read(body(b"x" * 3_000_000))
    assert len(extraction._started) == 1


async def test_workers_are_few_however_many_pages_there_are(make: Make) -> None:
    extraction = make(workers=2)
    found = await asyncio.gather(*(extraction.read(body(str(number).encode())) for number in range(40)))
    assert [answer["main_text"] for answer in found] == [str(number) for number in range(40)]
    assert len(extraction._started) == 2


@pytest.mark.parametrize(
    ("fetched", "trusted", "home"),
    [
        pytest.param(body(b"x"), False, True, id="small"),
        pytest.param(body(b"x" * (SMALL + 1)), False, False, id="large"),
        pytest.param(body(b"%PDF-1.7"), False, False, id="a PDF by its bytes"),
        pytest.param(body(b"x", "application/pdf"), False, False, id="a PDF by its type"),
        pytest.param(body(b"%PDF-1.7"), True, True, id="a PDF of our own"),
    ],
)
async def test_what_is_read_at_home(make: Make, fetched: Fetched, trusted: bool, home: bool) -> None:
    extraction = make(at_home=1, trusted=trusted)
    await extraction.read(fetched)
    assert (not extraction._started) is home
    if home:
        await extraction.read(fetched)
        assert extraction._started, "only the first few are"


async def test_a_question_that_was_given_up_leaves_no_answer_for_the_next(make: Make) -> None:
    extraction = make()
    asking = asyncio.create_task(extraction.read(body(HANG)))
    await until(lambda: extraction._started)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert (await extraction.read(body(b"next")))["main_text"] == "next"


async def test_closing_ends_the_workers(make: Make) -> None:
    extraction = make()
    await extraction.read(body(b"x"))
    [process] = extraction._started
    await extraction.aclose()
    assert process.returncode is not None
