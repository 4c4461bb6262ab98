"""Applications that start at once: one finds out about a plugin, the others wait for its answer.

How they take turns, also where one is killed or stopped, is shown in `tests.storage`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

SCRIPT = Path(__file__).with_name("starting_process.py")
ENOUGH_S = 120.0  # what nobody needs

pytestmark = pytest.mark.usefixtures("home")


class Applications:
    """Processes that start at once, with one memory."""

    def __init__(self, folder: Path) -> None:
        self._signs = folder
        self._running: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, *plugins: Path, may: tuple[str, ...], **variables: str):
        """Start one, which stops at the steps that it may not take."""
        self.permit(name, *may)
        self._running[name] = subprocess.Popen(
            [sys.executable, SCRIPT, name, self._signs, *plugins],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
        )

    def permit(self, name: str, *steps: str) -> None:
        """Let one take steps."""
        for each in steps:
            (self._signs / f"{name}.may-{each}").touch()

    def until(self, name: str, sign: str) -> None:
        """Wait until one has come to a step."""
        end = time.monotonic() + ENOUGH_S
        while not (self._signs / f"{name}.{sign}").exists():
            assert self._running[name].poll() is None, f"{name} ended before the step {sign}"
            assert time.monotonic() < end, f"{name} never came to the step {sign}"
            time.sleep(0.01)

    def result(self, name: str):
        """Wait for one's end and return what it did."""
        output, _ = self._running[name].communicate(timeout=ENOUGH_S)
        assert self._running[name].returncode == 0
        return json.loads(output)

    def close(self) -> None:
        """End those that still run."""
        for process in self._running.values():
            process.kill()
            process.communicate()


@pytest.fixture
def applications(tmp_path) -> Iterator[Applications]:
    """Applications that end with the test."""
    (tmp_path / "signs").mkdir()
    made = Applications(tmp_path / "signs")
    yield made
    made.close()


@pytest.fixture
def plugins(plugin_file) -> list[Path]:
    """Two plugins with different bytes."""
    variants = {"libone.so": "good", "libtwo.so": "needed-none"}
    return [plugin_file(name, variant, scheme=name[3:-3]) for name, variant in variants.items()]


ALL = ["one", "two"]
LOADED = dict.fromkeys(ALL, "loaded")


@pytest.mark.parametrize(("stage", "may"), [("probe", ()), ("try", ("probe",))])
def test_another_waits_for_the_first_and_reads_its_answer(stage, may, applications, plugins):
    applications.start("first", *plugins, may=may)
    applications.until("first", stage)
    applications.start("other", *plugins, may=("probe", "try"))
    applications.until("other", "waits")
    applications.permit("first", "probe", "try")
    first, other = applications.result("first"), applications.result("other")

    assert (first["probe"], other["probe"]) == (ALL, [])
    assert sorted(first["try"] + other["try"]) == ALL  # who waits for a probe may try next
    assert stage == "probe" or other["try"] == []
    assert first["states"] == other["states"] == LOADED


def test_each_tries_for_itself_where_nothing_can_be_kept(applications, plugins, tmp_path):
    nowhere = tmp_path / "a file"
    nowhere.touch()
    for name in "ab":
        applications.start(name, *plugins, may=("probe",), XDG_CACHE_HOME=str(nowhere))
    for name in "ab":
        applications.until(name, "try")
    for name in "ab":
        applications.permit(name, "try")
    assert [applications.result(name)["try"] for name in "ab"] == [ALL, ALL]
