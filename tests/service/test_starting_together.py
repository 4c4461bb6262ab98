"""Applications that start at once: one finds out about a plugin, the others wait for its answer."""

from __future__ import annotations

import json
import os
import signal
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
EVERY_STEP = ("may-probe", "may-try")


class Applications:
    """Processes that start at once, with one memory."""

    def __init__(self, folder: Path) -> None:
        self._signs = folder
        self._running: dict[str, subprocess.Popen[str]] = {}

    def start(self, name: str, *plugins: Path, may: tuple[str, ...] = EVERY_STEP, **variables: str):
        """Start one, which stops at the steps that it may not take."""
        self.permit(name, *may)
        command = [sys.executable, str(SCRIPT), name, str(self._signs)]
        self._running[name] = subprocess.Popen(
            [*command, *map(str, plugins)],
            env={**os.environ, **variables},
            stdout=subprocess.PIPE,
            text=True,
        )

    def permit(self, name: str, *steps: str) -> None:
        """Let one take steps."""
        for each in steps:
            (self._signs / f"{name}.{each}").touch()

    def until(self, name: str, sign: str) -> None:
        """Wait until one has come to a step."""
        end = time.monotonic() + ENOUGH_S
        while not (self._signs / f"{name}.{sign}").exists():
            assert self._running[name].poll() is None, f"{name} ended before it {sign}"
            assert time.monotonic() < end, f"{name} never {sign}"
            time.sleep(0.01)

    def send(self, name: str, number: signal.Signals) -> None:
        """Send one a signal."""
        self._running[name].send_signal(number)

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
    """Three plugins with different bytes."""
    variants = {"libone.so": "good", "libtwo.so": "needed-none", "libthree.so": "versioned-symbols"}
    return [plugin_file(name, variant, scheme=name[3:-3]) for name, variant in variants.items()]


pytestmark = pytest.mark.usefixtures("home")
ALL = ["one", "two", "three"]
LOADED = dict.fromkeys(ALL, "loaded")
NAMES = ["a", "b"]


def _come_to(stage: str, applications: Applications, plugins: list[Path]) -> None:
    """Start an application that stays at a stage, and others, which wait for it."""
    applications.start("first", *plugins, may=() if stage == "probe" else ("may-probe",))
    applications.until("first", {"probe": "probes", "try": "tries"}[stage])
    for name in NAMES:
        applications.start(name, *plugins)
    for name in NAMES:
        applications.until(name, "waits")


def _done(results: list[dict[str, list[str]]], what: str) -> list[str]:
    return sorted(plugin for result in results for plugin in result[what])


@pytest.mark.parametrize("stage", ["probe", "try"])
def test_the_others_wait_for_the_first_and_read_its_answer(stage, applications, plugins):
    _come_to(stage, applications, plugins)
    applications.permit("first", *EVERY_STEP)
    others = [applications.result(name) for name in NAMES]
    first = applications.result("first")

    assert first["probes"] == ALL
    assert _done(others, "probes") == []
    assert stage == "probe" or first["tries"] == ALL  # who waits for a probe may try next
    assert _done([first, *others], "tries") == sorted(ALL)
    assert [other["states"] for other in others] == [LOADED] * len(NAMES)


@pytest.mark.parametrize(("stage", "again"), [("probe", ALL), ("try", [])])
def test_one_takes_over_from_an_owner_that_is_killed(stage, again, applications, plugins):
    _come_to(stage, applications, plugins)
    applications.send("first", signal.SIGKILL)
    others = [applications.result(name) for name in NAMES]

    assert _done(others, "probes") == sorted(again)
    assert _done(others, "tries") == sorted(ALL)
    assert [other["states"] for other in others] == [LOADED] * len(NAMES)


def test_an_owner_that_is_stopped_keeps_nobody_for_ever(applications, plugins):
    """Neither one that waits until a plugin is probed, nor until it is tried."""
    applications.start("first", *plugins, may=())
    applications.until("first", "probes")
    applications.send("first", signal.SIGSTOP)
    applications.start("b", *plugins, PATIENCE_S="0.1", TIMEOUT_S="3")
    applications.until("b", "waits")
    other = applications.result("b")
    applications.send("first", signal.SIGCONT)
    applications.permit("first", *EVERY_STEP)

    assert other["tries"] == ALL
    assert other["states"] == LOADED
    assert applications.result("first")["states"] == LOADED


def test_processes_with_different_plugins_take_turns(applications, plugins):
    one, two, three = plugins
    applications.start("first", one, two, may=("may-probe",))
    applications.until("first", "tries")
    applications.start("other", three)
    applications.until("other", "waits")
    applications.permit("first", "may-try")
    assert applications.result("first")["tries"] == ["one", "two"]
    assert applications.result("other")["tries"] == ["three"]


def test_each_tries_for_itself_where_nothing_can_be_kept(applications, plugins, tmp_path):
    nowhere = tmp_path / "a file"
    nowhere.touch()
    for name in NAMES:
        applications.start(name, *plugins, may=("may-probe",), XDG_CACHE_HOME=str(nowhere))
    for name in NAMES:
        applications.until(name, "tries")
    for name in NAMES:
        applications.permit(name, "may-try")
    assert [applications.result(name)["tries"] for name in NAMES] == [ALL, ALL]
