"""Interrupts at random moments of all that a service does; afterwards everything has to work.

`python -m tests.stress.interrupts ROUNDS SEED`. In each round a signal handler comes at a moment of
one action: in most rounds it raises, in the others it uses the package itself. Then another thread
does all of it once more.
"""

from __future__ import annotations

import faulthandler
import gc
import os
import random
import shutil
import sys
import threading
import warnings
from collections import Counter
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from modular_tf.concurrency import fork_lock
from modular_tf.service import default as service_module
from modular_tf.service.default import LoadedOnce
from modular_tf.service.service import PluginService
from tests.stress.library_folder import SLOTS, LibraryFolder
from tests.stress.moments import InterruptError, MomentOfStep, MomentOfTime, cost_of
from tests.stress.service_round import ACTIONS, ServiceRound

if TYPE_CHECKING:
    from tests.stress.moments import Cost

PATIENCE_S = 20.0
COLD_ROUNDS = 10  # one in so many begins with nothing remembered, and has plugins to try
ROUNDS_FOR_ONE_LEFT = 100
"""In how many rounds one descriptor may be lost, about three times what was found: of a directory,
which `owned_file` cannot own, or in Python's own `subprocess` and `socket`. CPython runs signal
handlers between a system call and the line that keeps what it returned."""
FEW = 2


class Campaign:
    """All rounds."""

    def __init__(self, seed: int) -> None:
        self.problems: Counter[str] = Counter()
        self.met = 0
        self._dice = random.Random(seed)
        base = Path.cwd() / "interrupts"
        base.mkdir()
        self._folder = LibraryFolder(base / "plugins")
        self._remembered = {
            Path(os.environ[f"XDG_{kind}_HOME"]): base / kind for kind in ("CACHE", "STATE")
        }
        self._costs: dict[str, Cost] = {}
        self._is_hanging = False

    def run(self, rounds: int) -> None:
        """Run so many rounds, or fewer where one hangs."""
        self._measure()
        before = _descriptors()
        for number in range(rounds):
            is_cold = number % COLD_ROUNDS == 0
            self._prepare(is_cold=is_cold)
            self._one_round(number)
            if self._is_hanging:
                break
            if is_cold:
                self._keep()
        self._make_default_service_anew()
        gc.collect()
        self._look_at_what_is_left(before, FEW + rounds // ROUNDS_FOR_ONE_LEFT)

    def _measure(self) -> None:
        """Learn what each action costs, and keep what is remembered by then for the others."""
        for _ in range(2):  # the first time modules are imported
            self._make_default_service_anew()
            done = ServiceRound(self._folder)
            self._costs = {action: cost_of(getattr(done, action)) for action in ACTIONS}
        self._keep()

    # -- what is remembered -----------------------------------------------------------------------

    def _keep(self) -> None:
        for place, kept in self._remembered.items():
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(place, kept)

    def _prepare(self, *, is_cold: bool) -> None:
        for place, kept in self._remembered.items():
            shutil.rmtree(place, ignore_errors=True)
            if not is_cold:
                shutil.copytree(kept, place)
        if is_cold:
            self._folder.put_all()
        elif self._dice.random() < 0.2:
            self._folder.put(self._dice.randrange(SLOTS))
        self._make_default_service_anew()

    def _make_default_service_anew(self) -> None:
        former = service_module._default
        service_module._default = LoadedOnce(PluginService, PluginService.load)
        if former.loaded is not None:
            former.loaded.close()

    # -- one round --------------------------------------------------------------------------------

    def _one_round(self, number: int) -> None:
        others = [action for action in ACTIONS if action not in {"discover", "load", "close"}]
        plan = ["discover", "load", *self._dice.sample(others, 3)]
        plan += ["close"] * (self._dice.random() < 0.2)
        done = ServiceRound(self._folder)
        target = self._dice.choice(plan)
        uses = self._dice.random() < 0.25
        moment = self._moment(done, self._costs[target], uses=uses)
        try:
            for action in plan:
                with moment if action == target else nullcontext():
                    getattr(done, action)()
        except InterruptError:
            self.met += 1
        except Exception as error:  # noqa: BLE001  (whatever comes is the result)
            self._note(number, f"{target}: {error!r}")
        self._check(number, done, f"{'a use' if uses else 'an interrupt'} of {target}")

    def _moment(self, done: ServiceRound, cost: Cost, *, uses: bool) -> MomentOfTime | MomentOfStep:
        def interrupt() -> None:
            raise InterruptError

        def use() -> None:
            self.met += 1
            try:
                done.use_in_handler()
            except Exception as error:  # noqa: BLE001  (likewise)
                self._note(-1, f"in the handler: {error!r}")

        handler = use if uses else interrupt
        if self._dice.random() < 0.5:
            return MomentOfTime(handler, self._dice.uniform(1e-5, cost.seconds))
        return MomentOfStep(handler, self._dice.randrange(1, cost.steps))

    def _check(self, number: int, done: ServiceRound, after: str) -> None:
        wrong: list[str] = []

        def check() -> None:
            try:
                wrong.extend(done.problems())
            except Exception as error:  # noqa: BLE001  (likewise)
                wrong.append(repr(error))

        checking = threading.Thread(target=check, daemon=True)
        checking.start()
        checking.join(PATIENCE_S)
        if checking.is_alive():
            faulthandler.dump_traceback(all_threads=True)
            wrong.append("nothing goes on")
            self._is_hanging = True
        if any(lock._is_owned() for lock in list(fork_lock._locks)):
            wrong.append("a lock is taken by nobody")
        for what in wrong:
            self._note(number, f"after {after}: {what}")

    def _note(self, number: int, what: str) -> None:
        self.problems[what] += 1
        print(f"round {number}: {what[:1000]}", flush=True)

    def _look_at_what_is_left(self, before: Counter[str], most: int) -> None:
        left = _descriptors() - before
        if sum(left.values()) > most:
            self._note(-1, f"descriptors are left: {dict(left)}")
        # One whose start was interrupted may never begin: Python left the lock of its start taken.
        others = [t for t in threading.enumerate() if t is not threading.current_thread()]
        threads = [t.name for t in others if t.is_alive()]
        if threads:
            self._note(-1, f"threads are left: {threads}")
        if children := _children():
            self._note(-1, f"processes are left: {children}")
        print(f"interrupts: descriptors left: {dict(left)}")


def _descriptors() -> Counter[str]:
    """Return what is open, without what tells one of a kind from another."""
    opened: Counter[str] = Counter()
    for entry in Path("/proc/self/fd").iterdir():
        try:
            opened[str(entry.readlink()).partition(":")[0]] += 1
        except OSError:
            continue  # of the listing itself
    return opened


def _children() -> list[str]:
    """Return the child processes that have not ended."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").read_text(encoding="ascii").split()
    stats = [Path(f"/proc/{pid}/stat").read_text(encoding="utf-8") for pid in listed]
    return [stat for stat in stats if stat.rpartition(")")[2].split()[0] != "Z"]


def main() -> int:
    """Run a campaign; print what it found."""
    rounds, seed = int(sys.argv[1]), int(sys.argv[2])
    warnings.simplefilter("ignore", ResourceWarning)  # the collector closes what is interrupted
    sys.unraisablehook = lambda _: None  # of interrupts in finalizers
    campaign = Campaign(seed)
    campaign.run(rounds)
    print(
        f"interrupts: {rounds} rounds, {campaign.met} of them met,"
        f" {sum(campaign.problems.values())} problems"
    )
    return 1 if campaign.problems else 0


if __name__ == "__main__":
    sys.exit(main())
