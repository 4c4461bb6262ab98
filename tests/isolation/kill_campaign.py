"""Threads that work on stores whose worker processes are killed at random.

Each thread has a folder of its own on one store. A call ends with a complete result or with one of
our errors, within its time limit; what was written and acknowledged is read again, byte for byte. A
store that is in the memory of its worker loses all with it, but never has other bytes.
"""

from __future__ import annotations

import gc
import os
import random
import signal
import threading
import time
import traceback
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from modular_tf import Config, PluginService
from modular_tf.errors import ModularTFError
from modular_tf.processes.descendants import children, living_descendants, memory_use

CALL_TIMEOUT_S = 20.0
_GRACE_S = 20.0  # a process is asked where it is, is ended, and another one starts
_LENGTHS = (0, 1, 100, 5_000, 70_000, 300_000, 3_000_000)
_NAMES = tuple(f"file{number}" for number in range(4))
_ENDED = {"LD-140", "LD-141", "LD-143", "LD-144"}
_TIME_TO_LEAVE_S = 20.0
_MOST_GROWTH = 64 << 20
_MOST_PROCESSES = 4000


class Store(NamedTuple):
    """A store to work on.

    Attributes:
        base: The URI of an empty folder.
        survives: Whether it outlives the worker.
    """

    base: str
    survives: bool


class _Content:
    """What a file may hold: one of some, or the beginning of one that was being written."""

    def __init__(self):
        self.changes = 0  # whether they succeeded or not
        self.is_now(None)

    def is_now(self, content):
        self.possible, self.begun = {content}, []

    def allows(self, found):
        if found in self.possible:
            return True
        return found is not None and any(begun.startswith(found) for begun in self.begun)


class _Worker:
    def __init__(self, campaign, number, store):
        self._campaign = campaign
        self._dice = random.Random(campaign.seed * 1000 + number)
        self._store = store
        self._folder = f"{store.base}/run{campaign.runs}-thread{number}"
        self._filesystem = campaign.service.filesystem_for(store.base)
        self._files = {name: _Content() for name in _NAMES}
        self._held = None
        self._versions = 0

    def _path(self, name):
        return f"{self._folder}/{name}"

    def _draw(self):
        name = self._dice.choice(_NAMES)
        return name, self._files[name]

    def prepare(self):
        with suppress(ModularTFError):
            self._filesystem.recursively_create_dir(self._folder)

    def work(self):
        while not self._campaign.is_over:
            operation = self._dice.choice((self.write, self.read, self.read_held, self.delete))
            with self._campaign.counted():
                try:
                    operation()
                except FileNotFoundError:
                    if self._store.survives:
                        raise

    def write(self):
        name, state = self._draw()
        self._versions += 1
        line = f"{self._path(name)} version {self._versions}\n".encode()
        length = self._dice.choice(_LENGTHS)
        content = (line * (length // len(line) + 1))[:length]
        state.begun.append(content)
        state.changes += 1
        if not self._store.survives:
            self.prepare()
        try:
            file = self._filesystem.new_writable_file(self._path(name))
            try:
                for first in range(0, length, 1 << 20):
                    file.append(content[first : first + (1 << 20)])
                file.close()
            except BaseException:
                with suppress(ModularTFError):
                    file.discard()
                raise
        except ModularTFError:
            state.possible |= {content, b""}
            raise
        state.is_now(content)

    def read(self):
        name, _ = self._draw()
        self._check(name)

    def read_held(self):
        """Read a file that is open since an earlier call, across the ends of its processes."""
        if self._held is None:
            name, state = self._draw()
            (content, *others) = state.possible
            if content is None or others or state.begun:
                return
            file = self._filesystem.new_random_access_file(self._path(name))
            self._held = (file, name, content, state.changes)
        file, name, content, changes = self._held
        if self._files[name].changes != changes:
            self._held = None
            file.close()
            return
        first = self._dice.randrange(len(content) + 1)
        try:
            found = file.read(first, 100_000)
        except ModularTFError:
            self._held = None
            file.close()
            raise
        if found != content[first : first + 100_000]:
            self._campaign.note(f"{self._path(name)} was open and gave {found[:60]!r} at {first}")

    def delete(self):
        name, state = self._draw()
        state.changes += 1
        try:
            self._filesystem.delete_file(self._path(name))
        except FileNotFoundError:
            self._check(name)
        except ModularTFError:
            state.possible.add(None)
            raise
        else:
            state.is_now(None)

    def check_all(self):
        for name in _NAMES:
            with self._campaign.counted(may_fail=False):
                self._check(name)
        if self._held is not None:
            self._held[0].close()

    def _check(self, name):
        state = self._files[name]
        try:
            found = bytes(self._filesystem.read_file(self._path(name)))
        except FileNotFoundError:
            found = None
        lost = found is None and not self._store.survives
        if not lost and not state.allows(found):
            expected = list(map(_shown, state.possible))
            text = f"{self._path(name)} gave {_shown(found)}, but holds one of {expected}"
            self._campaign.note(text)
        state.is_now(found)


def _shown(content):
    return None if content is None else (len(content), content[:60])


class Campaign:
    """The threads, what kills their workers, and what they found.

    Args:
        stores: The threads take them in turns.
        libraries: Of plugins, beside those of the package.
        seconds: How long to work.
        seed: Of what threads draw.
        kill_every_s: The mean time between two kills.
        threads: How many there are.
    """

    def __init__(self, stores, *, libraries, seconds, seed, kill_every_s=0.3, threads=8):
        self.seed = seed
        self.errors = Counter()
        self.problems = []
        self.operations = self.kills = self.runs = 0
        self.is_over = False
        self._stores, self._libraries = stores, libraries
        self._seconds, self._kill_every_s, self._threads = seconds, kill_every_s, threads
        self._lock = threading.Lock()

    def run(self):
        self._run_once(min(2.0, self._seconds / 4))  # which starts what stays
        descriptors, memory = _measured()
        self._run_once(self._seconds)
        descriptors_after, memory_after = _measured()
        if descriptors_after > descriptors:
            self.note(f"{descriptors_after - descriptors} descriptors were left open")
        if memory_after > memory + _MOST_GROWTH:
            self.note(f"memory grew by {(memory_after - memory) >> 20} MiB")
        if left := left_behind():
            self.note(f"{len(left)} processes were left")

    def _run_once(self, seconds):
        self.runs += 1
        self.service = PluginService(
            config=Config(most_worker_faults=0),
            plugin_paths=self._libraries,
            isolation="process",
            call_timeout_s=CALL_TIMEOUT_S,
        )
        with self.service:
            self.service.load()
            self.is_over = False
            workers = [
                _Worker(self, number, self._stores[number % len(self._stores)])
                for number in range(self._threads)
            ]
            for worker in workers:
                worker.prepare()
            threads = [threading.Thread(target=worker.work, daemon=True) for worker in workers]
            for thread in threads:
                thread.start()
            self._kill_for(seconds)
            self.is_over = True
            for thread in threads:
                thread.join(CALL_TIMEOUT_S + _GRACE_S)
            if any(thread.is_alive() for thread in threads):
                self.note("a call does not end")
                return
            for worker in workers:
                worker.check_all()

    def _kill_for(self, seconds):
        dice = random.Random(self.seed)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(dice.expovariate(1 / self._kill_every_s))
            # Workers, and watchers without one: those without children.
            if victims := [pid for pid in _descendants() if not children(pid)]:
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(victims), signal.SIGKILL)
                    self.kills += 1

    @contextmanager
    def counted(self, *, may_fail=True):
        """Count an operation, and note what it raises but the end of its process."""
        try:
            yield
        except ModularTFError as error:
            with self._lock:
                self.errors[f"{error.rule} {type(error).__name__}"] += 1
            if not may_fail or error.rule not in _ENDED:
                self.note(repr(error))
        except Exception:  # noqa: BLE001  (a problem whatever it is)
            self.note(traceback.format_exc())
        with self._lock:
            self.operations += 1

    def note(self, problem):
        with self._lock:
            self.problems.append(problem)

    def told(self):
        counts = f"{self.operations} operations, {self.kills} kills, {len(self.problems)} problems"
        problems = (f"PROBLEM: {problem}" for problem in self.problems[:20])
        return "\n".join([*problems, f"errors: {dict(sorted(self.errors.items()))}", counts])


def _descendants():
    """Return the descendants but the zygote, which is the only child."""
    own = set(children(os.getpid()))
    return [pid for pid in living_descendants(os.getpid(), _MOST_PROCESSES) if pid not in own]


def left_behind():
    """Return the processes that do not end in time; the zygote goes on."""
    deadline = time.monotonic() + _TIME_TO_LEAVE_S
    while (left := _descendants()) and time.monotonic() < deadline:
        time.sleep(0.01)
    return left


def _measured():
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), memory_use("self").touched
