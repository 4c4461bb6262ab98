"""Which tests execute a line: recorded once for each test file, and chosen for each mutant."""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

from mutation.recorder import configuration, recorded

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mutation.mutants import Mutant
    from mutation.test_runs import TestRuns

_LONGEST_RECORDING_S = 3600.0
_SAID_AT_MOST = 300


def read_toml(file: Path) -> dict[str, Any]:
    """Return what a file holds."""
    return tomllib.loads(file.read_text(encoding="utf-8"))


def rooms() -> dict[str, list[str]]:
    """Return the rooms that are mutated, each with the folders of its tests."""
    return read_toml(Path(__file__).with_name("rooms.toml"))


def room_of(file: str, among: Iterable[str]) -> str:
    """Return the room of a file; empty where none has it."""
    fitting = [room for room in among if file == room or file.startswith(f"{room}/")]
    return max(fitting, key=len, default="")


def digest_of(*files: Path) -> str:
    """Return a name for what is in files."""
    told = hashlib.sha256()
    for file in files:
        told.update(file.read_bytes())
    return told.hexdigest()[:16]


class Selection:
    """The tests of each mutant.

    Args:
        checkout: Where the tests are.
        folder: Where recordings are kept; they hold for one state of the package.
        budget_s: The seconds that the tests of one mutant may take, by the recording.

    Attributes:
        unreliable: Tests that are not chosen: they fail without a mutant, too.
    """

    def __init__(self, checkout: Path, folder: Path, budget_s: float) -> None:
        self._checkout = checkout
        self._folder = folder
        self._budget_s = budget_s
        self._seconds: dict[str, float] = {}
        self._sizes: dict[str, int] = {}  # how many lines of the package a test executes
        self._by_line: dict[tuple[str, int], set[str]] = defaultdict(set)
        self.unreliable: set[str] = set()
        folder.mkdir(parents=True, exist_ok=True)

    def record(self, folders: Iterable[str], runs: TestRuns) -> None:
        """Record the test files of folders that are new or changed, and take in all."""
        for folder in sorted(folders):
            kept = {file: self._kept(file) for file in self._test_files(folder)}
            missing = [file for file, path in kept.items() if not path.exists()]
            if missing:
                print(f"recording {len(missing)} files of {folder}", flush=True)
                self._record(missing, kept, runs)
            for path in kept.values():
                self._take(json.loads(path.read_text(encoding="utf-8")))

    def _test_files(self, folder: str) -> list[str]:
        place = self._checkout / folder
        found = [place] if place.is_file() else sorted(place.rglob("test_*.py"))
        return [str(path.relative_to(self._checkout)) for path in found]

    def _kept(self, file: str) -> Path:
        name = file.replace("/", "-").removesuffix(".py")
        return self._folder / f"{name}-{digest_of(self._checkout / file)}.json"

    def _record(self, files: list[str], kept: dict[str, Path], runs: TestRuns) -> None:
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            ended = runs.run(
                files, "-p", "mutation.recorder", timeout=_LONGEST_RECORDING_S,
                env=configuration(Path(folder), runs.package),
            )  # fmt: skip
            print(ended.said[-_SAID_AT_MOST:], flush=True)
            found = recorded(Path(folder), runs.package)
        by_file: dict[str, dict[str, Any]] = {file: {} for file in files}
        for name, test in found.items():
            by_file[name.partition("::")[0]][name] = test
        for file, tests in by_file.items():
            kept[file].write_text(json.dumps(tests), encoding="utf-8")

    def _take(self, tests: dict[str, Any]) -> None:
        for name, test in tests.items():
            if not test["passed"]:
                continue
            self._seconds[name] = test["seconds"]
            self._sizes[name] = sum(map(len, test["lines"].values()))
            for file, lines in test["lines"].items():
                for line in lines:
                    self._by_line[file, line].add(name)

    @property
    def names(self) -> set[str]:
        """All recorded tests that passed."""
        return set(self._seconds)

    def tests_of(self, mutant: Mutant) -> list[str]:
        """Return the tests that execute a mutant, the most likely to notice it first.

        Those of its own room come first, then those that execute the fewest lines of the package.
        """
        known = rooms()
        own = tuple(known.get(room_of(mutant.file, known), ()))
        of_room = {name for name in self._seconds if name.startswith(own)}
        executing = (self._executing(mutant) or of_room) - self.unreliable

        def rank(name: str) -> tuple[bool, int, float]:
            return not name.startswith(own), self._sizes[name], self._seconds[name]

        return self._affordable(sorted(executing, key=rank))

    def _executing(self, mutant: Mutant) -> set[str]:
        lines = (line for executed in mutant.executed for line in executed)
        return set().union(*(self._by_line.get((mutant.file, line), ()) for line in lines))

    def _affordable(self, ranked: list[str]) -> list[str]:
        left = self._budget_s
        chosen = []
        for name in ranked:
            left -= self._seconds[name]
            if chosen and left < 0:
                break
            chosen.append(name)
        return chosen
