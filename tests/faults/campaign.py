"""Threads that work on a store through a proxy which makes requests fail at random.

Usage: python -m tests.faults.campaign OPERATIONS SEED

The environment says where: WILD_PLUGIN is the library, WILD_BASE the URI of an empty folder, PROXY
the proxy's URL, FAULT_CHANCE how likely a request meets a fault, and WILD_FOLDER the folder that
the store serves, for a store that is read only.
Each operation ends with a complete result or with one of our errors, within a limited time; what
does not is printed, and the exit status is 1 then. In between, the proxy makes no faults, and all
that was written is read again.
"""

import faulthandler
import json
import os
import random
import sys
import threading
import traceback
import urllib.request
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

from modular_tf.errors import ModularTFError
from modular_tf.fsspec import ModularFileSystem
from tests.faults.operations import CHANGES, READS, READS_OF_FILES
from tests.faults.shelf import Shelf, WrongResultError

THREADS = int(os.environ.get("FAULT_THREADS", "8"))
OPERATIONS_BETWEEN_CHECKS = 5
LONGEST_S = 400.0  # of those between two checks: SDKs try a request again for up to a minute


class Campaign:
    """The threads and what they found. [any thread]"""

    def __init__(self, seed):
        scheme, _, base = os.environ["WILD_BASE"].partition("://")
        self._fs = ModularFileSystem(scheme, plugin=os.environ["WILD_PLUGIN"])
        self._folder = os.environ.get("WILD_FOLDER", "")
        self._seed = seed
        self._shelves = [Shelf(f"{base}/thread{number}") for number in range(THREADS)]
        self._dice = [random.Random(seed * 1000 + number) for number in range(THREADS)]
        self.done = Counter()
        self.errors = Counter()
        self.problems = []

    def run(self, operations):
        faulthandler.enable()
        for number, shelf in enumerate(self._shelves):
            self._fill(shelf, self._dice[number])
        for part in range(-(-operations // (THREADS * OPERATIONS_BETWEEN_CHECKS))):
            self._set_chance(float(os.environ["FAULT_CHANCE"]), self._seed + part)
            self._in_threads(self._work)
            self._set_chance(0.0, self._seed)
            self._in_threads(self._check_all)

    def _set_chance(self, chance, seed):
        body = json.dumps({"chance": chance, "seed": seed}).encode()
        url = f"{os.environ['PROXY']}/-/settings"
        with urllib.request.urlopen(urllib.request.Request(url, body, method="PUT"), timeout=10):
            pass

    def _fill(self, shelf, dice):
        """Put files in place before there are faults."""
        for name in ("file0", "file1", "file2", "file3"):
            content = shelf.new_content(name, dice)
            if self._folder:
                file = Path(self._folder, Path(shelf.folder).name, name)
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
            else:
                self._fs.pipe_file(shelf.path(name), content)
            shelf.is_now(name, content)

    def _in_threads(self, work):
        threads = [
            threading.Thread(target=work, args=(number,), daemon=True) for number in range(THREADS)
        ]
        faulthandler.dump_traceback_later(LONGEST_S, exit=True)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        faulthandler.cancel_dump_traceback_later()

    def _work(self, number):
        shelf, dice = self._shelves[number], self._dice[number]
        for _ in range(OPERATIONS_BETWEEN_CHECKS):
            operation = dice.choice(READS_OF_FILES if self._folder else (*READS, *CHANGES))
            with self._noted(operation.__name__):
                try:
                    operation(self._fs, shelf, dice)
                except ModularTFError as error:
                    self._note_error(operation.__name__, shelf, error)

    def _note_error(self, name, shelf, error):
        """Count an error; one that says that an existing file is missing is wrong."""
        self.errors[type(error).__name__] += 1
        if isinstance(error, FileNotFoundError) and all(
            None not in shelf.possible(name) for name in shelf.names()
        ):
            self.problems.append(f"{name}: everything exists, but {error}")

    def _check_all(self, number):
        """Read everything when there are no faults: any error is a problem then."""
        shelf = self._shelves[number]
        for name in shelf.names():
            with self._noted("check"):
                try:
                    found = self._fs.cat_file(shelf.path(name))
                except FileNotFoundError:
                    found = None
                shelf.check_content(name, found)

    @contextmanager
    def _noted(self, name):
        """Count what is done, and note what it raises as a problem."""
        try:
            yield
        except WrongResultError as error:
            self.problems.append(f"{name}: {error}")
        except Exception:  # noqa: BLE001  (a problem whatever it is)
            self.problems.append(f"{name}: {traceback.format_exc()}")
        self.done[name] += 1

    def report(self):
        """Print what was done and found."""
        for problem in self.problems:
            print(f"PROBLEM: {problem}")
        print(f"done: {dict(sorted(self.done.items()))}")
        print(f"errors: {dict(sorted(self.errors.items()))}")
        print(f"{self.done.total()} operations and checks, {len(self.problems)} problems")


def main():
    campaign = Campaign(int(sys.argv[2]))
    campaign.run(int(sys.argv[1]))
    campaign.report()
    return 1 if campaign.problems else 0


if __name__ == "__main__":
    sys.exit(main())
