"""Hours of mixed work in minutes: what the process has must not go on growing.

Eight threads use all of the package while plugins come and go under a watch. After each round, of
half a second, one looks at what the process has.
"""

from __future__ import annotations

import faulthandler
import gc
import io
import os
import resource
import sys
import tempfile
import threading
import time
from pathlib import Path
from random import Random
from statistics import median

from modular_tf.service.log_output import configure_logging
from tests.stress.forks import World, work

THREADS = 8
ROUND_S = 0.5
# By how much the median of the last third may be above that of the first: a share of it, or a
# number: what the allocator of eight threads may keep, and a few of the rest.
ALLOWED = {
    "MiB of memory": (0.05, 8.0),
    "descriptors": (0.1, 4.0),
    "threads": (0.1, 2.0),
    "mappings": (0.05, 24.0),
}


def look() -> dict[str, float]:
    """Return what this process has, its garbage collected."""
    gc.collect()
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return {
        "MiB of memory": pages * resource.getpagesize() / (1 << 20),
        "descriptors": len(os.listdir("/proc/self/fd")),  # noqa: PTH208  (only how many)
        "threads": len(os.listdir("/proc/self/task")),  # noqa: PTH208
        "mappings": Path("/proc/self/maps").read_bytes().count(b"\n"),
    }


def growing(looks: list[dict[str, float]]) -> list[str]:
    """Return what grew after the warm-up, which is the first fifth; nothing of a few looks."""
    kept = looks[len(looks) // 5 :]
    third = len(kept) // 3
    found = []
    for name, (share, number) in ALLOWED.items() if third > 1 else ():
        first, last = (median(it[name] for it in part) for part in (kept[:third], kept[-third:]))
        if last - first > max(share * first, number):
            found.append(f"{name} grew from {first:.1f} to {last:.1f}")
    return found


def main() -> None:
    """Run the campaign that the command line asks for."""
    rounds, seed = map(int, sys.argv[1:])
    faulthandler.enable()
    configure_logging("json", stream=io.StringIO())
    enough, looks = threading.Event(), []
    with tempfile.TemporaryDirectory(prefix="growth-") as folder:
        world = World(Path(folder), Random(seed))
        threads = [
            threading.Thread(target=work, args=(world.any_job, enough)) for _ in range(THREADS)
        ]
        with world.service, world.service.watch():
            for thread in threads:
                thread.start()
            for _ in range(rounds):
                time.sleep(ROUND_S)
                looks.append(look())
            enough.set()
            for thread in threads:
                thread.join()
    problems = growing(looks)
    print(*problems, f"{rounds} rounds, {len(problems)} problems", sep="\n")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
