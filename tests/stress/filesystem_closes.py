"""Closes of filesystems and of their files, against every call.

In each round every call meets every close once, on a filesystem of a kind that is drawn: threads
make the call again and again while another closes at a random moment. A call has to succeed or
raise an error of the package's. One of the kinds is a plugin that ends the process where the host
uses what it has cleaned up, or cleans up what it uses.
"""

from __future__ import annotations

import itertools
import os
import sys
import tempfile
import threading
import time
from functools import partial
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError
from tests.fixtures.compiler import compile_object, link_library
from tests.stress.filesystem_calls import CLOSES, USES, Place
from tests.stress.watched_child import still_alive, watch_child

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_PAIR_S = 60.0
PAIRS_OF_A_PROCESS = 40
THREADS = 2
MOST_CALLS = 50
LATEST_CLOSE_S = 0.002
PATIENCE_OF_THE_PLUGIN_US = 300
SCHEMES = ("watch", "watch", "ram", "file")
EXPECTED = (ModularTFError, ValueError)  # Python's own closed files raise a ValueError

Pair = tuple[str, str]


def watchful_plugin() -> str:
    """Return the plugin that sees what its host does wrong."""
    source = Path(__file__).parents[1] / "filesystem" / "watchful_plugin.c"
    compiled = compile_object(source, [f"PATIENCE_US={PATIENCE_OF_THE_PLUGIN_US}"])
    return str(link_library("libwatchful.so", [compiled]))


class Meeting:
    """Threads that make a call again and again, while another closes what it uses.

    Args:
        call: What it raises has to be expected, as what the close raises.
        close: The close.
    """

    def __init__(self, call: Callable[[], object], close: Callable[[], object]) -> None:
        self.faults: list[str] = []
        self._call, self._close = call, close
        self._start = threading.Barrier(THREADS + 1)
        self._is_over = threading.Event()

    def run(self, delay_s: float) -> None:
        """Let them meet; the close comes after a delay."""
        threads = [threading.Thread(target=self._repeat) for _ in range(THREADS)]
        for thread in threads:
            thread.start()
        self._start.wait()
        time.sleep(delay_s)
        self.expect(self._close)
        self._is_over.set()
        for thread in threads:
            thread.join()

    def _repeat(self) -> None:
        self._start.wait()
        for _ in range(MOST_CALLS):
            is_last = self._is_over.is_set()
            self.expect(self._call)
            if is_last:
                return

    def expect(self, act: Callable[[], object]) -> None:
        """Do something; note what it raises, unless that is one of the expected errors."""
        try:
            act()
        except EXPECTED:
            pass
        except BaseException as error:  # noqa: BLE001  (it is told)
            self.faults.append(f"{type(error).__name__}: {error}")


def meeting_of(pair: Pair, place: Place) -> Meeting:
    """Return the meeting of a use and a close at a place."""
    use, close = USES[pair[0]], CLOSES[pair[1]]
    things = [use.prepare(place)]

    def call() -> None:
        try:
            thing = things[0]
        except IndexError:  # it was dropped
            return
        use.call(place, thing)

    return Meeting(call, lambda: close(place, things))


def try_pairs(pairs: list[Pair], plugin: str, seed: int, progress: int) -> None:
    """Let each pair meet; print the faults and end the process where there was one."""
    dice = Random(seed)
    faults = []
    # Each service would read every installed package again, which takes most of the time. What
    # is imported late is imported by the first one.
    Place("watch", "watch://h/first", [plugin]).service.close()
    sys.path[:] = [entry for entry in sys.path if "site-packages" not in entry]
    with tempfile.TemporaryDirectory(prefix="closes-") as folder:
        for number, pair in enumerate(pairs):
            os.pwrite(progress, f"{number:6}".encode(), 0)
            still_alive(LONGEST_PAIR_S)
            scheme = dice.choice(SCHEMES)
            root = f"file://{folder}/{number}" if scheme == "file" else f"{scheme}://h/{number}"
            place = Place(scheme, root, [plugin])
            meeting = meeting_of(pair, place)
            meeting.run(dice.uniform(0, LATEST_CLOSE_S))
            faults += [f"{pair} on {scheme}: {fault}" for fault in meeting.faults]
            meeting.expect(place.service.close)
    if faults:
        sys.exit("\n".join(faults))


def run_round(dice: Random, plugin: str) -> list[str]:
    """Try all pairs in a random order, some of them in each process; return the problems."""
    pairs = list(itertools.product(USES, CLOSES))
    dice.shuffle(pairs)
    problems = []
    progress = os.memfd_create("number of the pair")
    while pairs:
        batch = pairs[:PAIRS_OF_A_PROCESS]
        os.pwrite(progress, b"     0", 0)
        problem = watch_child(
            partial(try_pairs, batch, plugin, dice.getrandbits(32), progress), LONGEST_PAIR_S
        )
        done = int(os.pread(progress, 6, 0)) + 1 if problem else len(batch)
        if problem:
            problems.append(f"{batch[done - 1]}: {problem}")
        pairs = pairs[done:]
    os.close(progress)
    return problems


def main() -> int:
    """Run the campaign that the command line asks for."""
    rounds, seed = map(int, sys.argv[1:])
    dice = Random(seed)
    plugin = watchful_plugin()
    found = 0
    for number in range(rounds):
        for problem in run_round(dice, plugin):
            print(f"round {number}: {problem}", flush=True)
            found += 1
    print(f"{len(USES) * len(CLOSES)} pairs in {rounds} rounds, {found} problems")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
