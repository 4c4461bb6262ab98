"""Time first contact: many small filesystem plugins, each tried in a process of its own.

Usage: python benchmarks/first_contact.py [--json FILE] [--plugins N] [--repeat N]

The plugins are copies of the bundled RAM filesystem; each copy is a file of its own, as a folder of
a thousand vendors would have. The figures are wall time from the call to the last finding, and
what the processes took of the processors.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import tempfile
import time
from pathlib import Path

import modular_tf
from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import Trials
from modular_tf.loading.task import Task

TARGET = "1000 well under 4 s on 2 processors"


def bundled_plugin() -> Path:
    """Return the RAM filesystem that comes with the package."""
    found = [Path(folder, "plugins", "libram_filesystem.so") for folder in modular_tf.__path__]
    return next(path for path in found if path.exists())


def copies(folder: Path, count: int) -> list[Task]:
    """Make the plugins and return what to try."""
    tasks = []
    for number in range(count):
        library = shutil.copy(bundled_plugin(), folder / f"libplugin_{number}.so")
        tasks.append(Task(f"plugin_{number}", str(library), kinds=("filesystem",)))
    return tasks


def measure(tasks: list[Task]) -> dict[str, float]:
    """Try all once, with a process that is started for it."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun = time.perf_counter()
    with Trials(Limits()) as trials:
        found = trials.try_plugins(tasks)
        seconds = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert all(finding.offer and finding.offer.schemes for finding in found)
    busy = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return {"s": seconds, "ms_each": seconds / len(tasks) * 1e3, "processor_s": busy}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--plugins", type=int, default=1000)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        tasks = copies(Path(folder), options.plugins)
        for count in (1, options.plugins):
            runs = [measure(tasks[:count]) for _ in range(options.repeat)]
            figures[str(count)] = best = min(runs, key=lambda run: run["s"])
            print(
                f"{count:6} plugins {best['s']:8.2f} s {best['ms_each']:8.2f} ms each,"
                f" {best['processor_s']:.2f} s of processors"
            )
    print(f"(target: {TARGET})")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
