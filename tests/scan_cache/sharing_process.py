"""One of many processes that fill and use one cache while plugins are replaced.

Arguments: its number, the folder of plugins, the file whose appearance starts it. Each plugin is of
one of two kinds that are equal in size and times. It prints how many it recalled.
"""

from __future__ import annotations

import os
import random
import sys
import time
from pathlib import Path

from modular_tf.discovery.host_fingerprint import HostFingerprint
from modular_tf.first_contact.finding import Finding, Offer
from modular_tf.service.storage import database
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.scan_cache import CacheEntry, ScanCache
from tests.scan_cache.conftest import look_into, write_library

EXPORTS = {"filesystem": "TF_InitPlugin", "device": "SE_InitPlugin"}
TIME_NS = 1_500_000_000_000_000_000


def open_cache(folder: Path) -> ScanCache:
    """Open the cache of a folder, on a host that stays what it is."""
    return ScanCache(PrivateDirectory(str(folder / "cache")), HostFingerprint((("host", "one"),)))


def write(path: Path, kind: str) -> None:
    """Let a plugin be of a kind, from one moment to the next."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    write_library(unfinished, exports=(EXPORTS[kind],), soname=path.name)
    os.utime(unfinished, ns=(TIME_NS, TIME_NS))
    unfinished.rename(path)


def kind_of(path: Path) -> str:
    """Read a plugin's kind from its bytes."""
    content = path.read_bytes()
    (kind,) = [kind for kind, export in EXPORTS.items() if export.encode() in content]
    return kind


def version_of(path: Path) -> tuple[int, int]:
    """Return what differs from one writing of a plugin to the next."""
    status = path.stat()
    return status.st_ino, status.st_ctime_ns


def is_true(known: CacheEntry, kind: str) -> bool:
    """Tell whether what is known of a plugin is so of one of that kind."""
    (found,) = known.facts.kinds
    offered = known.finding and known.finding.offer
    return found.value == kind and known.tried and offered == Offer((kind,))


def visit(cache: ScanCache, path: Path) -> bool:
    """Recall a plugin and check what is recalled, or look into it; tell whether it was known."""
    before = version_of(path)
    kind = kind_of(path)
    known = cache.recall(str(path))
    if known is not None:
        # Of the kind alone it would not be seen that the plugin was replaced and replaced back.
        assert before != version_of(path) or is_true(known, kind), (path, known)
        return True
    found = look_into(cache, path)
    if found is None:  # it was replaced in the meantime
        return False
    (found_kind,) = found.facts.kinds
    finding = Finding(None, Offer((found_kind.value,)), ())
    cache.remember(found._replace(tried=True, finding=finding))
    return False


def main() -> None:
    """Visit all plugins several times, in an order of its own; some processes replace some."""
    number, folder, start = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
    database._BUSY_S = 100.0  # nothing is to be lost, however slow the machine is
    dice = random.Random(number)
    plugins = sorted(folder.glob("*.so"))
    start.with_name(f"ready-{number}").touch()
    while not start.exists():
        time.sleep(0.001)
    recalled = 0
    for _ in range(4):
        cache = open_cache(start.parent)
        for path in dice.sample(plugins, len(plugins)):
            if path.name.startswith("changing") and number % 4 == 0:
                write(path, dice.choice(list(EXPORTS)))
            recalled += visit(cache, path)
        assert cache.save()
    print(recalled)


if __name__ == "__main__":
    main()
