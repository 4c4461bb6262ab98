"""Time what is kept between runs: the scan cache, the host's fingerprint, notes around a load.

Usage: python benchmarks/kept_state.py [--json FILE] [--repeat N] [--count N]

The cache has many copies of one bundled plugin, each remembered with its dependencies and with what
first contact found. Files are older than the two seconds after which their times tell any change.
"create and remove" is what a note costs the file system alone. Figures are the best of several
rounds.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.host_fingerprint import host_fingerprint
from modular_tf.discovery.linking.host_exports import host_exports
from modular_tf.discovery.probe import Prober
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.first_contact.finding import Finding, Offer, PlatformOffer
from modular_tf.service.storage.notes import Notes
from modular_tf.service.storage.scan_cache import ScanCache

if TYPE_CHECKING:
    from collections.abc import Callable

TARGETS = {
    "load the cache (ms)": "<= 15 for 1000",
    "recall (us)": "<= 15",
    "fingerprint (us)": "<= 1000",
    "note (us)": "<= 100",
}
FINDING = Finding(None, Offer(("scheme",), PlatformOffer("TYPE", "PLATFORM", 220)), ())


def best(work: Callable[[], object], repeat: int, loops: int = 1) -> float:
    """Return the shortest time of one call, in microseconds."""
    times = []
    for _ in range(repeat):
        start = time.perf_counter()
        for _ in range(loops):
            work()
        times.append((time.perf_counter() - start) / loops)
    return min(times) * 1e6


def fill(folder: Path, count: int) -> list[str]:
    """Remember many plugins; return their paths."""
    bundled = discover(SearchPaths.of_process()).candidates
    original = next(found for found in bundled if "ram" in found.name)
    paths = [str(folder / f"lib{number}.so") for number in range(count)]
    for path in paths:
        shutil.copy(original.path, path)
    time.sleep(2.5)
    cache = ScanCache.of_process()
    began_ns = time.time_ns()
    with Prober(host_exports()) as prober:
        for path in paths:
            seen = see(path)
            probe = prober.probe(original._replace(path=path))
            known = seen and cache.describe(probe, seen, began_ns)
            if known is None or not cache.remember(known._replace(tried=True, finding=FINDING)):
                raise SystemExit(f"{path} was not remembered")
    cache.save()
    return paths


def recall_all(paths: list[str]) -> None:
    """Recall each plugin, as a process that starts does."""
    cache = ScanCache.of_process()
    if not all(cache.recall(path) for path in paths):
        raise SystemExit("a plugin was not recalled")


def note() -> None:
    """Enter and leave a load."""
    with NOTES.around("loading", "plugin", "/a/plugin.so", "0" * 64):
        pass


def create_and_remove(path: str) -> None:
    """Do what a note does to the file system."""
    fd = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    os.write(fd, bytes(400))
    os.close(fd)
    os.unlink(path)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--count", type=int, default=1000)
    options = parser.parse_args()
    plugins = HOME / "plugins"
    plugins.mkdir()
    paths = fill(plugins, options.count)
    load = best(ScanCache.of_process, options.repeat)
    cache = ScanCache.of_process()
    forgotten = 0

    def save() -> None:
        """Store one more change, as a process does that finds one new plugin."""
        nonlocal forgotten
        cache.forget(f"/not/there/{forgotten}")
        forgotten += 1
        cache.save()

    recall = best(lambda: recall_all(paths), options.repeat)
    figures = {
        "load the cache (ms)": load / 1000,
        "save (us)": best(save, options.repeat),
        "recall (us)": (recall - load) / options.count,
        "fingerprint (us)": best(host_fingerprint.__wrapped__, options.repeat),
        "note (us)": best(note, options.repeat, 200),
        "create and remove (us)": best(
            lambda: create_and_remove(str(HOME / "file")), options.repeat, 200
        ),
    }
    for subject, figure in figures.items():
        print(f"{subject:24} {figure:9.2f}  {TARGETS.get(subject, '')}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        HOME = Path(name)
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = name
        NOTES = Notes.of_process()
        main()
