"""`python -m core.run benchmark=draco system=replay effort=low`: run a benchmark on a system.

A thin shell: words are prepared, composed and checked here, so that every refusal exits with 2 before
Hydra's own entry is called; the work is in core/app.py. Sweeps (`-m`) and Hydra's own options go through
Hydra, whose job is one line, because launchers pickle it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

HELP: Final = """\
python -m core.run KEY=VALUE…       run a benchmark on a system and score it with a judge

  python -m core.run experiment=demo         embedded demo (also demo_draco, demo_dag): no key, no network
  python -m core.run benchmark=draco system=chat system.model=MODEL sample=10 budget.usd=50
  python -m core.run benchmark=draco system=replay system.path=submissions.jsonl judge=gpt
  python -m core.run -m benchmark=draco system=replay system.path=FILE judge=gemini,gpt   sweep

what is run
  benchmark=NAME  benchmark.source=hub|sample|FILE  benchmark.revision=REV
  system=NAME     effort=WORD  attempts=N  system.label=  system.model=  system.base_url=
                  system.api_key_env=VARIABLE  system.max_in_flight=N  system.on_failure=zero|missing
  judge=NAME      judge.model=  judge.base_url=  judge.api_key_env=VARIABLE  judge.effort=
                  judge.temperature=  judge.repeats=N  judge.max_in_flight=N  judge.path=FILE (recorded)
which tasks, in this order
  tasks=[ID,GLOB*]  where.LABEL=VALUE  sample=N seed=N  limit=N  shard=I/N
money
  budget.usd=  budget.judge_usd=  budget.confirm_usd=100  dry_run=true
where and how
  out=DIR  store=FILE  fail_on=any|never|SHARE  retry=none|failed  progress=auto|rich|plain|none
  benchmark.coverage_floor=0.95  benchmark.strict=true

  -m, --multirun       sweep: every combination of values given with commas
  --config-dir DIR     a folder of your own configs (benchmark/, system/, judge/ …)
  --cfg job            print the composed configuration; send nothing
  --help               this text          `python -m core.list` shows what the names may be

exit codes: 0 all expected numbers present, 2 refused (nothing sent), 3 some number missing,
            4 stopped by the budget, 130 interrupted, 1 a bug of ours
"""


def main(argv: Sequence[str] | None = None) -> int:
    """The command; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if any(word in ("--help", "-h") for word in words):
        sys.stdout.write(HELP)
        return 0
    try:
        from core.launch import launch

        return launch(words)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return 130


if __name__ == "__main__":
    sys.exit(main())
