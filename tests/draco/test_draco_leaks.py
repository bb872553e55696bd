"""The contamination list and the scan: what counts as a sign of the benchmark's own pages, and what does not."""

from __future__ import annotations

import pytest
from draco_helpers import submission, task_of

from core.model import Citation, Submission
from plugins.draco.grader import DracoGrader
from plugins.draco.leaks import BLOCKED, BLOCKED_HOSTS, Finding, flags, scan


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("https://huggingface.co/datasets/perplexity-ai/draco", "dataset"),
        ("http://www.huggingface.co/datasets/perplexity-ai/draco/", "dataset"),
        ("HuggingFace.co/datasets/Perplexity-AI/DRACO/viewer/default/test?p=1#row", "dataset"),
        ("https://huggingface.co/datasets/perplexity-ai/draco/resolve/main/test.jsonl", "dataset"),
        ("https://hf.co/datasets/perplexity-ai/draco.", "dataset"),
        ("https://hf-mirror.com/datasets/perplexity-ai/draco", "dataset"),
        ("https://datasets-server.huggingface.co/rows?dataset=perplexity-ai%2Fdraco&split=test", "dataset"),
        ("~/.cache/huggingface/hub/datasets--perplexity-ai--draco/", "dataset"),
        ("load_dataset('perplexity-ai/draco')", "dataset"),
        ("(https://huggingface.co/datasets/maxkru92/draco/blob/main/test.jsonl)", "mirror"),
        ("https://github.com/valyuAI/valyu-benchmarks/tree/main/draco", "mirror"),
        ("https://arxiv.org/abs/2602.11685", "paper"),
        ("http://arxiv.org:80/abs/2602.11685v2?context=cs", "paper"),
        ("https://www.arxiv.org//pdf/2602.11685v1.pdf", "paper"),
        ("https://arxiv.org/html/2602.11685v1#S4.SS2", "paper"),
        ("<https://export.arxiv.org/abs/2602.11685/>", "paper"),
        ("https://doi.org/10.48550/arXiv.2602.11685", "paper"),
        ("https://www.alphaxiv.org/overview/2602.11685", "paper"),
        ("https://some.mirror.example/papers/2602.11685.md", "paper"),
        ("see arXiv:2602.11685 [cs.LG]", "paper"),
        ("see arXiv 2602.11685v1", "paper"),
        ("https://r2cdn.perplexity.ai/pplx-draco.pdf", "paper"),
        (f"https://{BLOCKED[-1]}?utm_source=x", "paper"),
    ],
)
def test_a_sign_is_found_wherever_it_stands(text: str, what: str) -> None:
    around = f"As shown in {text}, it is so."
    for given, place in [
        (submission(around), "text"),
        (submission(files={"report.md": around}), "file report.md"),
        (submission(citations=(Citation(url="https://example.org"), Citation(url=text))), "citation 2"),
        (submission(citations=(Citation(url="https://example.org", excerpt=around),)), "citation 1"),
    ]:
        assert {(finding.what, finding.place) for finding in scan(given)} == {(what, place)}
    assert flags(submission(around)) == (f"contaminated:{what}",)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "https://arxiv.org/abs/2602.1168",
        "https://arxiv.org/abs/2602.116850",
        "https://arxiv.org/abs/12602.11685",
        "https://arxiv.org/abs/2602.11684v1",
        "arXiv:2602.116851",
        "The index closed at 2602.11685 points.",
        "a ratio of 5/2602.11685",
        "https://huggingface.co/datasets/perplexity-ai/draco-2",
        "https://huggingface.co/datasets/perplexity-ai/draconian",
        "https://huggingface.co/datasets/not-perplexity-ai/draco",
        "https://huggingface.co/datasets/someone/draco",
        "https://huggingface.co/perplexity-ai/r1-1776",
        "https://google.github.io/draco/",
        "Draco Malfoy asked Perplexity AI",
        "https://github.com/valyuai/valyu-benchmarks-of-mine",
        "https://r2cdn.perplexity.ai/pplx-draco.pdfs",
        "https://notr2cdn.perplexity.ai/pplx-draco.pdf",
    ],
)
def test_what_only_looks_like_one_is_not(text: str) -> None:
    assert scan(submission(f"See {text} .")) == ()
    assert scan(submission("x", citations=(Citation(url=text),))) == ()


def test_each_sign_is_reported_once_a_place() -> None:
    url = "https://arxiv.org/abs/2602.11685"
    given = submission(f"{url} and {url} and hf.co/datasets/perplexity-ai/draco", files={"a": url})
    assert set(scan(given)) == {
        Finding("paper", "text"),
        Finding("dataset", "text"),
        Finding("paper", "file a"),
    }
    assert len(scan(given)) == 3
    assert flags(given) == ("contaminated:dataset", "contaminated:paper")


@pytest.mark.parametrize("given", [None, submission(None, status="empty")])
def test_no_answer_has_no_sign(given: Submission | None) -> None:
    assert flags(given) == ()


def test_a_task_is_flagged_and_its_score_left_alone() -> None:
    task = task_of({"facts": {"a": 10}})
    found = DracoGrader(None).score(task, submission("arXiv:2602.11685"), [])
    assert found.flags == ("contaminated:paper",)


def test_what_systems_are_asked_to_block() -> None:
    assert task_of({"facts": {"a": 10}}).blocked == BLOCKED
    assert len(set(BLOCKED)) == len(BLOCKED)
    for url in (
        "huggingface.co/datasets/perplexity-ai/draco",
        "arxiv.org/abs/2602.11685",
        "arxiv.org/pdf/2602.11685",
        "arxiv.org/html/2602.11685",
        "r2cdn.perplexity.ai/pplx-draco.pdf",
    ):
        assert url in BLOCKED
    for url in BLOCKED:
        assert "://" not in url
        assert scan(submission(url)) != (), url
    assert {"arxiv.org", "huggingface.co"} < set(BLOCKED_HOSTS)
    assert not any("/" in host for host in BLOCKED_HOSTS)
