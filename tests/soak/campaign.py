"""The threads, their jobs, and what came of it."""

from __future__ import annotations

import random
import threading
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from modular_tf.service.service import PluginService
from tests.soak import plugins, work
from tests.soak.measures import take_sample

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
    samples: list[Any] = field(default_factory=list)


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

    def run(self, seconds, step_s, report):
        """Work for so long, with a sample in each step; `report` is called after each."""
        pool = plugins.build_pool(self._folder)
        with PluginService() as service:
            service.load()
            common, watched = plugins.CommonService(pool), plugins.WatchedFolder(self._folder)
            jobs = self._jobs(service, common, watched, pool)
            threads = [
                threading.Thread(target=self._work, args=(number, jobs))
                for number in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            self._measure(seconds, step_s, report)
            self._stop.set()
            for thread in threads:
                thread.join()
            common.close()
            watched.close()
        return self.outcome

    def _jobs(self, service, common, watched, pool):
        """Return functions of a thread's folder and its dice."""
        plugins.named_loads(service, pool, self._folder)
        (device,) = service.devices("CPU")
        jobs = {
            "service opened and closed": partial(plugins.short_service, pool),
            "service in common": common.work,
            "service replaced": lambda _folder, _dice: common.replace(),
            "report": lambda _folder, _dice: service.report(),
            "watched change": lambda _folder, dice: watched.change(dice),
            "watched files": watched.work,
        }
        for scheme in ("ram", "file", "pool3"):
            fs, root = service.filesystem(scheme), self._root(scheme)
            for job in (work.files, work.region, work.errors):
                jobs[f"{scheme} {job.__name__}"] = partial(_in_folder, job, fs, root)
        for job in (work.arrays, work.exchange, work.streams):
            jobs[f"device {job.__name__}"] = partial(_on_device, job, device)
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

    def _measure(self, seconds, step_s, report):
        end = time.monotonic() + seconds
        while time.monotonic() < end and not self.outcome.errors:
            time.sleep(step_s)
            self.outcome.samples.append(take_sample())
            report(self.outcome)


def _in_folder(job, fs, root, folder, dice):
    job(fs, f"{root}/{folder}", dice)


def _on_device(job, device, _folder, dice):
    job(device, dice)
