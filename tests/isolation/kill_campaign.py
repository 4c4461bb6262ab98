"""Threads that work on stores whose worker processes are killed at random.

Each thread has a folder of its own on one store. A call ends with a complete result or with one of
our errors, within its time-out; what was written and acknowledged is read again, byte for byte. A
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf import Config, PluginService
from modular_tf.errors import InvalidArgumentError, ModularTFError
from modular_tf.processes.descendants import children, living_descendants, memory_use

if TYPE_CHECKING:
    from collections.abc import Iterator

CALL_TIMEOUT_S = 20.0
_GRACE_S = 20.0  # a process is asked where it is, is ended, and another one starts
_LENGTHS = (0, 1, 100, 5_000, 70_000, 300_000, 3_000_000)
_NAMES = tuple(f"file{number}" for number in range(4))
_ENDED = {"LD-140", "LD-141", "LD-143", "LD-144"}
_TIME_TO_LEAVE_S = 20.0
_MOST_GROWTH = 64 << 20
_MOST_PROCESSES = 1000


@dataclass(frozen=True)
class Store:
    """A store to work on.

    Attributes:
        base: The URI of an empty folder.
        survives: Whether it outlives the worker.
    """

    base: str
    survives: bool


@dataclass
class _Content:
    """What a file may hold: one of some, or the beginning of one that was being written."""

    possible: set[bytes | None] = field(default_factory=lambda: {None})
    begun: list[bytes] = field(default_factory=list)
    changes: int = 0  # whether they succeeded or not

    def allows(self, found: bytes | None) -> bool:
        if found in self.possible:
            return True
        return found is not None and any(begun.startswith(found) for begun in self.begun)

    def is_now(self, content: bytes | None) -> None:
        self.possible, self.begun = {content}, []


class _Worker:
    """One thread's work."""

    def __init__(self, campaign: Campaign, number: int, store: Store) -> None:
        self._campaign = campaign
        self._dice = random.Random(campaign.seed * 1000 + number)
        self._store = store
        self._folder = f"{store.base}/run{campaign.runs}-thread{number}"
        self._filesystem: Any = campaign.service.filesystem_for(store.base)
        self._files = {name: _Content() for name in _NAMES}
        self._held: tuple[Any, str, bytes, int] | None = None
        self._versions = 0

    def _path(self, name: str) -> str:
        return f"{self._folder}/{name}"

    def prepare(self) -> None:
        with suppress(ModularTFError):
            self._filesystem.recursively_create_dir(self._folder)

    def work(self) -> None:
        operations = (self.write, self.write, self.read, self.read, self.read_held, self.delete)
        more = (self.look, self.list, self.read_region)
        while not self._campaign.is_over:
            operation = self._dice.choice((*operations, *more))
            self._campaign.count(self._store)
            with self._campaign.timed(operation.__name__):
                try:
                    operation()
                except FileNotFoundError:
                    if self._store.survives:
                        raise

    def write(self) -> None:
        name = self._dice.choice(_NAMES)
        self._versions += 1
        line = f"{self._path(name)} version {self._versions}\n".encode()
        length = self._dice.choice(_LENGTHS)
        content = (line * (length // len(line) + 1))[:length]
        state = self._files[name]
        state.begun.append(content)
        state.changes += 1
        if not self._store.survives:
            self.prepare()
        try:
            file = self._filesystem.new_writable_file(self._path(name))
            state.possible |= {content, b""}
            try:
                for first in range(0, length, 1 << 20):
                    file.append(content[first : first + (1 << 20)])
                file.close()
            except BaseException:
                with suppress(ModularTFError):
                    file.discard()
                raise
        except ModularTFError as error:
            state.possible |= {content, b""}
            if not self._store.survives and isinstance(error, FileNotFoundError):
                return  # the folder went with the process
            raise
        state.is_now(content)

    def read(self) -> None:
        name = self._dice.choice(_NAMES)
        self._check(name, self._read(name))

    def _read(self, name: str) -> bytes | None:
        try:
            return bytes(self._filesystem.read_file(self._path(name)))
        except FileNotFoundError:
            return None

    def read_region(self) -> None:
        name = self._dice.choice(_NAMES)
        try:
            region = self._filesystem.new_read_only_memory_region_from_file(self._path(name))
        except FileNotFoundError:
            self._check(name, None)
            return
        except InvalidArgumentError:  # an empty file has none
            self._check(name, b"")
            return
        found = bytes(region.view())
        region.close()
        self._check(name, found)

    def read_held(self) -> None:
        """Read a file that is open since an earlier call, across the ends of its processes."""
        if self._held is None:
            name = self._dice.choice(_NAMES)
            state = self._files[name]
            content = next(iter(state.possible)) if len(state.possible) == 1 else None
            if content is None or state.begun:
                return
            file = self._filesystem.new_random_access_file(self._path(name))
            self._held = (file, name, content, state.changes)
        self._read_on(*self._held)

    def _read_on(self, file: Any, name: str, content: bytes, changes: int) -> None:
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

    def delete(self) -> None:
        name = self._dice.choice(_NAMES)
        state = self._files[name]
        state.changes += 1
        try:
            self._filesystem.delete_file(self._path(name))
        except FileNotFoundError:
            self._check(name, None)
        except ModularTFError:
            state.possible.add(None)
            raise
        else:
            state.is_now(None)

    def look(self) -> None:
        name = self._dice.choice(_NAMES)
        state = self._files[name]
        try:
            found = self._filesystem.stat(self._path(name)).length
        except FileNotFoundError:
            self._check(name, None)
            return
        if not state.begun and found not in {len(c) for c in state.possible if c is not None}:
            self._campaign.note(f"{self._path(name)} has {found} bytes")

    def list(self) -> None:
        try:
            names = {name.rstrip("/") for name in self._filesystem.get_children(self._folder)}
        except FileNotFoundError:
            names = set()
        for name, state in self._files.items():
            is_there = name in names
            if is_there and state.possible == {None} and not state.begun:
                self._campaign.note(f"{self._path(name)} is listed, and does not exist")
            if not is_there:
                self._check(name, None)

    def check_all(self) -> None:
        """Read everything when nothing is killed any more."""
        for name in _NAMES:
            with self._campaign.timed("check", may_fail=False):
                self._check(name, self._read(name))
        if self._held is not None:
            self._held[0].close()
            self._held = None

    def _check(self, name: str, found: bytes | None) -> None:
        state = self._files[name]
        lost = found is None and not self._store.survives
        if not lost and not state.allows(found):
            told = [None if one is None else (len(one), one[:60]) for one in state.possible]
            got = None if found is None else (len(found), found[:60])
            self._campaign.note(f"{self._path(name)} gave {got}, but holds one of {told}")
        state.is_now(found)


class Campaign:
    """The threads, who kills their workers, and what they found.

    Args:
        stores: The threads take them in turns.
        libraries: Of plugins, beside those of the package.
        seconds: How long to work.
        seed: Of what threads draw.
        kill_every_s: The mean time between two kills.
        threads: How many there are.
    """

    def __init__(
        self,
        stores: list[Store],
        *,
        libraries: list[str],
        seconds: float,
        seed: int,
        kill_every_s: float = 0.3,
        threads: int = 8,
    ) -> None:
        self.seed = seed
        self.done: Counter[str] = Counter()
        self.done_on: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.problems: list[str] = []
        self.slowest = (0.0, "nothing")
        self.kills = 0
        self.is_over = False
        self.runs = 0
        self._stores = stores
        self._libraries = libraries
        self._seconds = seconds
        self._kill_every_s = kill_every_s
        self._threads = threads
        self._lock = threading.Lock()

    def run(self) -> None:
        """Work, then look at what is left."""
        self._run_once(min(2.0, self._seconds / 4))  # which starts what stays
        before = _measured()
        self._run_once(self._seconds)
        after = _measured()
        if after[0] > before[0]:
            self.note(f"{after[0] - before[0]} descriptors were left open")
        if after[1] > before[1] + _MOST_GROWTH:
            self.note(f"memory grew by {(after[1] - before[1]) >> 20} MiB")
        if strangers := _left_behind():
            self.note(f"{len(strangers)} processes were left")

    def _run_once(self, seconds: float) -> None:
        self.runs += 1
        config = Config(most_worker_faults=0)
        self.service = PluginService(
            config=config,
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

    def _kill_for(self, seconds: float) -> None:
        dice = random.Random(self.seed)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            time.sleep(dice.expovariate(1 / self._kill_every_s))
            if victims := _ends_of_trees():
                with suppress(ProcessLookupError):
                    os.kill(dice.choice(victims), signal.SIGKILL)
                    self.kills += 1

    def count(self, store: Store) -> None:
        """Note that an operation on a store is tried."""
        with self._lock:
            self.done_on[store.base.partition("://")[0] if "://" in store.base else "local"] += 1

    @contextmanager
    def timed(self, name: str, *, may_fail: bool = True) -> Iterator[None]:
        """Note how long something takes, and what it raises."""
        started = time.monotonic()
        try:
            yield
        except ModularTFError as error:
            with self._lock:
                self.errors[f"{error.rule} {type(error).__name__}"] += 1
            if not may_fail or error.rule not in _ENDED:
                self.note(f"{name}: {error!r}")
        except Exception:  # noqa: BLE001  (a problem whatever it is)
            self.note(f"{name}: {traceback.format_exc()}")
        took = time.monotonic() - started
        with self._lock:
            self.done[name] += 1
            self.slowest = max(self.slowest, (took, name))

    def note(self, problem: str) -> None:
        """Keep a problem."""
        with self._lock:
            self.problems.append(problem)

    def told(self) -> str:
        """Return what was done and found."""
        seconds, name = self.slowest
        lines = [f"PROBLEM: {problem}" for problem in self.problems[:20]]
        lines += [f"done: {dict(sorted(self.done.items()))}"]
        lines += [f"on: {dict(sorted(self.done_on.items()))}"]
        lines += [f"errors: {dict(sorted(self.errors.items()))}"]
        counts = (
            f"{self.done.total()} operations, {self.kills} kills, {len(self.problems)} problems"
        )
        lines += [f"{counts}; {name} took {seconds:.1f} s"]
        return "\n".join(lines)


def _ends_of_trees() -> list[int]:
    """Return the descendants without children but the zygote: workers, and watchers without one."""
    own = set(children(os.getpid()))
    found = living_descendants(os.getpid(), _MOST_PROCESSES)
    return [pid for pid in found if pid not in own and not children(pid)]


def _left_behind() -> list[int]:
    deadline = time.monotonic() + _TIME_TO_LEAVE_S
    while time.monotonic() < deadline:
        own = set(children(os.getpid()))
        left = [p for p in living_descendants(os.getpid(), _MOST_PROCESSES) if p not in own]
        if not left:
            return []
        time.sleep(0.05)
    return left


def _measured() -> tuple[int, int]:
    """Return how many descriptors and how much memory this process has."""
    gc.collect()
    return len(list(Path("/proc/self/fd").iterdir())), memory_use("self").touched
