"""Contract checks for plugins and adapters: what the engine relies on, tried without a network.

    from core.testing import benchmark, check_benchmark

    def test_my_benchmark_keeps_the_contract():
        check_benchmark(benchmark("my_benchmark"))

A check raises ContractBroken (an AssertionError), which says what was expected and what came. `benchmark`,
`system` and `judge` build the parts of a name as a run would: through the installed plugins and their configs.
Parts that are made by hand can be checked as well: BenchmarkUnderTest, `check_system(make)`, `check_judge(make)`.
"""

from core.testing.benchmarks import BenchmarkUnderTest, benchmark, check_benchmark
from core.testing.claims import ContractBroken
from core.testing.desk import FakeDesk, value_of
from core.testing.judges import check_judge, judge
from core.testing.parts import TEST_KEY, sample_question, sample_tasks, services
from core.testing.systems import check_system, system

__all__ = [
    "TEST_KEY",
    "BenchmarkUnderTest",
    "ContractBroken",
    "FakeDesk",
    "benchmark",
    "check_benchmark",
    "check_judge",
    "check_system",
    "judge",
    "sample_question",
    "sample_tasks",
    "services",
    "system",
    "value_of",
]
