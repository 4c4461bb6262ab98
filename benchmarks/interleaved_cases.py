"""Cases that benchmarks time in turn, so that what disturbs one disturbs its peer too."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

Call = Callable[[], object]


@dataclass
class Case:
    """One call, and what it is compared with."""

    name: str
    call: Call
    calls_of_a_round: int = 2000
    peer: str = ""
    target: str = ""
    around: Callable[[], Any] = nullcontext
    rounds: list[float] = field(default_factory=list)

    def run(self) -> None:
        """Time one round."""
        call, count = self.call, self.calls_of_a_round
        with self.around():
            start = time.perf_counter_ns()
            for _ in range(count):
                call()
            self.rounds.append((time.perf_counter_ns() - start) / count / 1e3)


class TensorFlowCase(Case):
    """A call in another interpreter, which times it itself."""

    def run(self) -> None:
        """Have one round timed."""
        self.rounds.append(self.call())  # type: ignore[arg-type]


@contextmanager
def interpreter_cases(command: Sequence[object]) -> Iterator[list[Case]]:
    """Start a program that writes its cases' names, and times each whose name it reads."""
    child = subprocess.Popen(
        list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with child:
        names = json.loads(child.stdout.readline())

        def ask(name: str) -> float:
            child.stdin.write(f"{name}\n")
            child.stdin.flush()
            return float(child.stdout.readline())

        yield [TensorFlowCase(name, lambda name=name: ask(name)) for name in names]
        child.stdin.close()


def measure(all_cases: list[Case], rounds: int) -> None:
    """Run the cases in turn, so that what disturbs one disturbs all; the first round warms up."""
    gc.collect()
    gc.disable()
    for _ in range(rounds + 1):
        for case in all_cases:
            case.run()
    for case in all_cases:
        del case.rounds[0]


def show(all_cases: list[Case], ratio_of: str = "median") -> dict[str, dict[str, float]]:
    """Print a line for each, with the ratio of medians or of the "best"; return the figures."""
    figures = {
        case.name: {"median": statistics.median(case.rounds), "best": min(case.rounds)}
        for case in all_cases
    }
    print(f"{'us per call':38}{'median':>11}{'best':>11}   ratio")
    for case in all_cases:
        found = figures[case.name]
        ratio = target = ""
        if case.peer:
            ratio = f"{found[ratio_of] / figures[case.peer][ratio_of]:.2f} of {case.peer}"
        if case.target:
            target = f"  (target: {case.target})"
        print(f"{case.name:38}{found['median']:11.2f}{found['best']:11.2f}   {ratio}{target}")
    return figures
