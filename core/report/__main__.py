"""`python -m core.report RUN…`."""

from __future__ import annotations

import sys

from core.report.html.command import main

if __name__ == "__main__":
    sys.exit(main())
