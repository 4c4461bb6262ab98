"""The threads, their jobs, and what came of it."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from modular_tf.service.service import PluginService
from tests.soak import coming_and_going, device_work, filesystem_work
from tests.soak.measures import Sample, take_sample
from tests.soak.watched_folder import WatchedFolder

THREADS = 8


@dataclass
class Outcome:
    """What a campaign did.

    Attributes:
        jobs: How often each job ran to its end.
        errors: The traces of all that no job expects.
        samples: What the process had, in even steps of time.
    """

    jobs: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)


class Campaign:
    """Eight threads that draw jobs until the time is up.

    Args:
        seed: Decides what each thread draws; how threads meet, it does not.
        folder: An empty folder for all files.
    """

    def __init__(self, seed, folder):
        self._seed = seed
        self._folder = folder
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self.outcome = Outcome()

    def run(self, seconds, step_s, tell):
        """Work for so long, with a sample in each step; `tell` is called after each."""
        pool = coming_and_going.build_pool(self._folder)
        with PluginService() as service:
            service.load()
            common, watched = coming_and_going.CommonService(pool), WatchedFolder(self._folder)
            jobs = self._jobs(service, common, pool)
            jobs["watched change"] = lambda _folder, dice: watched.change(dice)
            jobs["watched files"] = watched.work
            threads = [
                threading.Thread(target=self._work, args=(number, jobs))
                for number in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            self._measure(seconds, step_s, tell)
            self._stop.set()
            for thread in threads:
                thread.join()
            common.close()
            watched.close()
        return self.outcome

    def _jobs(self, service, common, pool):
        coming_and_going.named_loads(service, pool, self._folder)
        (device,) = service.devices("CPU")
        jobs = {}
        for scheme in ("ram", "file", "pool3"):
            fs, root = service.filesystem(scheme), self._root(scheme)
            for name in ("files", "region", "errors"):
                jobs[f"{scheme} {name}"] = partial(
                    _in_folder, getattr(filesystem_work, name), fs, root
                )
        for name in ("arrays", "exchange", "streams"):
            jobs[f"device {name}"] = partial(_on_device, getattr(device_work, name), device)
        jobs["service opened and closed"] = partial(coming_and_going.short_service, pool)
        jobs["service in common"] = common.work
        jobs["service replaced"] = lambda _folder, _dice: common.replace()
        jobs["report"] = lambda _folder, _dice: service.report()
        return jobs

    def _root(self, scheme):
        return f"file://{self._folder}/posix" if scheme == "file" else f"{scheme}://soak"

    def _work(self, number, jobs):
        dice, names = random.Random(f"{self._seed}:{number}"), sorted(jobs)
        while not self._stop.is_set():
            name = dice.choice(names)
            try:
                jobs[name](f"thread{number}", dice)
            except Exception:  # noqa: BLE001  (each is one that nobody expected)
                with self._lock:
                    self.outcome.errors.append(f"{name}: {traceback.format_exc()}")
            else:
                with self._lock:
                    self.outcome.jobs[name] += 1

    def _measure(self, seconds, step_s, tell):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.outcome.errors:
            time.sleep(step_s)
            self.outcome.samples.append(take_sample())
            tell(self.outcome)


def _in_folder(job, fs, root, folder, dice):
    job(fs, f"{root}/{folder}", dice)


def _on_device(job, device, _folder, dice):
    job(device, dice)
