"""A plugin of pytest that writes down which lines of the package each test executes.

Child processes that inherit the environment of a test are counted with it: `coverage` starts in
them by itself. A process that serves many tests by forks executes a text in each, by which the fork
counts with its own test. What a child process with an environment of its own executes is not seen.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import time
from collections import defaultdict
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coverage
import pytest
from coverage.numbits import numbits_to_nums

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONFIGURATION = """\
[run]
data_file = {folder}/lines
parallel = true
source = {package}
context = ${{MUTANTS_TEST-}}
"""
_IN_FORKS = """\
import os, coverage
if watching := coverage.Coverage.current():
    watching.switch_context(os.environ.get("MUTANTS_TEST", ""))
"""
# In the documented schema of coverage's files; its own questions are one for each file and context.
_LINES = """\
SELECT file.path, context.context, line_bits.numbits FROM line_bits
JOIN file ON file.id = line_bits.file_id JOIN context ON context.id = line_bits.context_id
"""


def configuration(folder: Path, package: Path) -> dict[str, str]:
    """Return the environment of pytest, once the configuration of `coverage` is written.

    Args:
        folder: An empty folder for the results.
        package: The package that is watched.
    """
    file = folder / "coveragerc"
    file.write_text(_CONFIGURATION.format(folder=folder, package=package), encoding="utf-8")
    return {
        "COVERAGE_PROCESS_START": str(file),
        "EXECUTED_IN_FORKS": _IN_FORKS,
        "MUTANTS_RECORDING": str(folder),
    }


class _Recorder:
    def __init__(self) -> None:
        self._tests: dict[str, Any] = {}
        self._coverage = coverage.Coverage.current() or coverage.Coverage(
            config_file=os.environ["COVERAGE_PROCESS_START"]
        )
        self._coverage.start()
        self._tracer = sys.gettrace()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        os.environ["MUTANTS_TEST"] = item.nodeid
        if sys.gettrace() is not self._tracer:  # a test before has ended it
            sys.settrace(self._tracer)
        self._coverage.switch_context(item.nodeid)
        started = time.monotonic()
        self._tests[item.nodeid] = {"passed": True}
        result = yield
        self._tests[item.nodeid]["seconds"] = round(time.monotonic() - started, 3)
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if not report.passed:
            self._tests[report.nodeid]["passed"] = False

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        told = json.dumps(self._tests)
        Path(os.environ["MUTANTS_RECORDING"], "tests.json").write_text(told, encoding="utf-8")


def pytest_configure(config: pytest.Config) -> None:
    """Begin, in the process that pytest was called in."""
    config.pluginmanager.register(_Recorder())


def recorded(folder: Path, package: Path) -> dict[str, Any]:
    """Return what was written: by test whether it passed, its seconds, and its lines by file."""
    tests: dict[str, Any] = json.loads((folder / "tests.json").read_text(encoding="utf-8"))
    lines: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for file in folder.glob("lines.*"):
        _add_lines(file, package, lines)
    for name, test in tests.items():
        test["lines"] = {file: sorted(found) for file, found in lines[name].items()}
    return tests


def _add_lines(file: Path, package: Path, lines: dict[str, dict[str, set[int]]]) -> None:
    with closing(sqlite3.connect(file)) as data, suppress(sqlite3.Error):  # of a killed process
        for source, context, numbits in data.execute(_LINES):
            test = context.rpartition("|")[2]  # behind that of the process that was forked
            lines[test][str(Path(source).relative_to(package.parent))].update(
                numbits_to_nums(numbits)
            )
