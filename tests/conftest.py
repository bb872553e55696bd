"""What every test starts from: no keys, no hub, no plugin switched off by the caller's environment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

#: Set before anything imports the libraries that read them.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("LEADLINE_DISABLE_PLUGINS", None)

# how long an example takes depends on the machine; a test asserts what is true, not how fast
settings.register_profile("leadline", deadline=None)
settings.load_profile("leadline")

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
_KEYS = ("OPENAI_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY", "DASHSCOPE_API_KEY")


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test must not find a real key by chance."""
    for name in _KEYS:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def in_tmp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder of the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
