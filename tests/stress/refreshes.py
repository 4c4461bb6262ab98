"""Refreshes of a service while others replace, remove and add the files of its plugins.

`python -m tests.stress.refreshes ROUNDS SEED`. In each round a thread changes files while one to
three others refresh, so that changes come while new files are tried, and one reads, which gets the
whole answer of one library or none. Afterwards what lies there has to be served, and nothing else,
and open files have to go on.
"""

from __future__ import annotations

import faulthandler
import gc
import random
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from modular_tf.errors import ModularTFError
from modular_tf.service.service import PluginService
from tests.stress.library_folder import SLOTS, LibraryFolder
from tests.stress.service_round import ServiceRound
from tests.watching.numbered import number_in, scheme_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.service.plugin import PluginEntry

PATIENCE_S = 60.0
LONGEST_PAUSE_S = 0.2


class Campaign:
    """All rounds, of one service."""

    def __init__(self, seed: int) -> None:
        self.problems = 0
        self.changes = 0
        self.refreshes = 0
        self._is_writing = False
        self._dice = random.Random(seed)
        self._folder = LibraryFolder(Path.cwd() / "refreshes")
        self._service = PluginService(
            plugin_dirs=[self._folder.path], bundled=False, fsspec_fallback=False
        )
        self._served = ServiceRound(self._folder, self._service)
        self._let_trials_take_longer()

    def _let_trials_take_longer(self) -> None:
        """Let files change after they were tried, as while the init of a slow plugin runs."""
        pipeline = self._service._pipeline
        # Else most files would change before they are opened to be tried.
        pipeline._admission.keep_warm()
        try_out = pipeline.try_out

        def take_longer(untried: Sequence[PluginEntry]) -> None:
            try_out(untried)
            if untried:
                time.sleep(self._dice.uniform(0, LONGEST_PAUSE_S))

        pipeline.try_out = take_longer  # type: ignore[method-assign]

    def run(self, rounds: int) -> None:
        """Run so many rounds, or fewer where one hangs."""
        with self._service:
            self._service.load()
            for number in range(rounds):
                if not self._one_round(number):
                    break

    def _one_round(self, number: int) -> bool:
        """Run one round; tell whether it came to its end."""
        held: Callable[[], list[str]] = list
        with suppress(ModularTFError):  # else the round before has told of it
            held = self._hold()
        self._is_writing = True
        works = [self._write, self._read, *[self._refresh] * self._dice.randrange(1, 4)]
        if not self._run_at_once(number, works):
            return False
        try:
            for what in self._wrong(held):
                self._note(number, what)
        except ModularTFError as error:
            self._note(number, f"a scheme cannot be used: {error!r}")
        return True

    def _run_at_once(self, number: int, works: list[Callable[[], object]]) -> bool:
        def run(work: Callable[[], object]) -> None:
            try:
                work()
            except Exception as error:  # noqa: BLE001  (whatever comes is the result)
                self._note(number, repr(error))

        threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        latest = time.monotonic() + PATIENCE_S
        for thread in threads:
            thread.join(max(0.0, latest - time.monotonic()))
        if any(thread.is_alive() for thread in threads):
            faulthandler.dump_traceback(all_threads=True)
            self._note(number, "nothing goes on")
            return False
        return True

    def _write(self) -> None:
        """Change a file again and again, and others at times."""
        slot = self._dice.randrange(SLOTS)
        try:
            for _ in range(self._dice.randrange(2, 6)):
                is_other = self._dice.random() < 0.2
                self._change(self._dice.randrange(SLOTS) if is_other else slot)
                time.sleep(self._dice.uniform(0, LONGEST_PAUSE_S))
        finally:
            self._is_writing = False

    def _change(self, slot: int) -> None:
        self.changes += 1
        if slot in self._folder.numbers and self._dice.random() < 0.5:
            self._folder.remove(slot)
        else:
            self._folder.put(slot)

    def _refresh(self) -> None:
        """Refresh again and again, the last time when all is written."""
        files = [self._folder.file_of(slot) for slot in range(SLOTS)]
        is_writing = True
        while is_writing:
            is_writing = self._is_writing
            self._service.refresh(files)  # of all would take longer than files are tried
            self.refreshes += 1

    def _read(self) -> None:
        """Read what is served, each file of one library."""
        while self._is_writing:
            with suppress(ModularTFError):  # of one that is replaced, or goes, before its first use
                self._served.numbers()
            time.sleep(0.002)

    # -- what has to be so ------------------------------------------------------------------------

    def _hold(self) -> Callable[[], list[str]]:
        """Open a file of some plugin; return what reads it, closes it, and tells what is wrong."""
        numbers = self._folder.numbers
        if not numbers:
            return list
        slot = self._dice.choice(list(numbers))
        before, uri = numbers[slot], f"{scheme_of(slot)}://host/file"
        opened = [self._service.filesystem_for(uri).new_random_access_file(uri)]

        def read() -> list[str]:
            with opened.pop() as reader:
                found = number_in(reader.read(0, 1 << 20))
            return [] if found == before else [f"an open file has {found}, had {before}"]

        return read

    def _wrong(self, held: Callable[[], list[str]]) -> list[str]:
        wrong = held()
        # Before they are used: what is mapped then may be found to be another file.
        schemes, expected = {*self._service.schemes()}, {*map(scheme_of, self._folder.numbers)}
        if schemes != expected:
            wrong.append(f"registered are {schemes}, expected {expected}")
        found = self._served.numbers()
        if found != self._folder.numbers:
            wrong.append(f"served are {found}, there lie {self._folder.numbers}")
        records = {record.path: record.state.value for record in self._service.plugins()}
        files = {str(self._folder.file_of(slot)): "loaded" for slot in self._folder.numbers}
        if records != files:
            wrong.append(f"listed are {records}, there lie {self._folder.numbers}")
        gc.collect()
        if changes := self._service.refresh():
            wrong.append(f"nothing changed, and a refresh tells of {changes}")
        if draining := self._service.draining:
            wrong.append(f"{draining} generations are left that nobody uses")
        return wrong

    def _note(self, number: int, what: str) -> None:
        self.problems += 1
        print(f"round {number}: {what[:1000]}", flush=True)


def main() -> int:
    """Run a campaign; print what it found."""
    rounds, seed = int(sys.argv[1]), int(sys.argv[2])
    campaign = Campaign(seed)
    campaign.run(rounds)
    print(
        f"refreshes: {rounds} rounds, {campaign.changes} changes of files in"
        f" {campaign.refreshes} refreshes, {campaign.problems} problems"
    )
    return 1 if campaign.problems else 0


if __name__ == "__main__":
    sys.exit(main())
