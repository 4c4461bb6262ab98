"""Many processes fill and use one cache at once, while plugins are replaced, and recall the truth.

Each plugin is of one of two kinds that are equal in size and times.
"""

import os
import random

from modular_tf.discovery.host_fingerprint import HostFingerprint
from modular_tf.first_contact.finding import Finding, Offer
from modular_tf.service.storage import database
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.scan_cache import ScanCache
from tests.scan_cache.conftest import look_into, write_library

PROCESSES = 16
EXPORTS = {"filesystem": "TF_InitPlugin", "device": "SE_InitPlugin"}
TIME_NS = 1_500_000_000_000_000_000


def open_cache(folder):
    """Open the cache of a folder, on a host that stays what it is."""
    return ScanCache(PrivateDirectory(str(folder / "cache")), HostFingerprint((("host", "one"),)))


def write(path, kind):
    """Make a plugin one of a kind, from one moment to the next."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    write_library(unfinished, exports=(EXPORTS[kind],), soname=path.name)
    os.utime(unfinished, ns=(TIME_NS, TIME_NS))
    unfinished.rename(path)


def kind_of(path):
    """Read a plugin's kind from its bytes."""
    content = path.read_bytes()
    (kind,) = [kind for kind, export in EXPORTS.items() if export.encode() in content]
    return kind


def version_of(path):
    """Return what differs from one writing of a plugin to the next."""
    status = path.stat()
    return status.st_ino, status.st_ctime_ns


def is_true(known, kind):
    """Say whether what is known of a plugin is so of one of that kind."""
    (found,) = known.facts.kinds
    offered = known.finding and known.finding.offer
    return found.value == kind and known.tried and offered == Offer((kind,))


def visit(cache, path):
    """Recall a plugin and check what is recalled, or look into it; return whether it was known."""
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


def visit_all(number, folder):
    """Visit all plugins several times, in an order of its own; some processes replace some."""
    database._BUSY_S = 100.0  # nothing is to be lost, however slow the machine is
    dice = random.Random(number)
    plugins = sorted((folder / "plugins").glob("*.so"))
    recalled = 0
    for _ in range(4):
        cache = open_cache(folder)
        for path in dice.sample(plugins, len(plugins)):
            if path.name.startswith("changing") and number % 4 == 0:
                write(path, dice.choice(list(EXPORTS)))
            recalled += visit(cache, path)
        assert cache.save()
    print(recalled, flush=True)


def share(folder):
    """Have processes begin at once, and wait for them."""
    begin, held = os.pipe()
    children = []
    for number in range(PROCESSES):
        child = os.fork()
        if child == 0:
            os.close(held)
            os.read(begin, 1)
            visit_all(number, folder)
            os._exit(0)
        children.append(child)
    os.close(held)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * PROCESSES


def test_sixteen_processes_share_it(tmp_path, run_forked):
    names = [f"{name}{n}.so" for name in ("constant", "changing") for n in range(12)]
    plugins = [tmp_path / "plugins" / name for name in names]
    for number, path in enumerate(plugins):
        write(path, ("filesystem", "device")[number % 2])

    code = """
        from pathlib import Path
        from tests.scan_cache.test_sharing import share
        share(Path.cwd())
    """
    counts = run_forked(code).stdout.split()

    assert len(counts) == PROCESSES
    assert sum(map(int, counts)) > 0
    cache = open_cache(tmp_path)
    known = {path: cache.recall(str(path)) for path in plugins}
    assert all(found is None or is_true(found, kind_of(path)) for path, found in known.items())
    assert all(known[path] for path in plugins if path.name.startswith("constant"))
