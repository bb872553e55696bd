"""`python -m core.pages export|import …`."""

from __future__ import annotations

import sys

from core.pages import main

if __name__ == "__main__":
    sys.exit(main())
