"""Plugins that come and go: a pool of files, services that load some of them, one in common.

Libraries are never unmapped, and a file is mapped once for all services: so that memory can stay
flat, files are drawn from a pool.
"""

from __future__ import annotations

import threading
from contextlib import suppress

from modular_tf.errors import ClosedError
from modular_tf.service.service import PluginService
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants
from tests.soak import filesystem_work

POOL = 6


def build_pool(folder):
    """Return copies of fixture plugins, each of a scheme of its own: pool0, pool1 ..."""
    made = []
    for number in range(POOL):
        built = build_plugin(variants("filesystem")["good"], {"FIXTURE_SCHEME": f"pool{number}"})
        target = folder / f"libpool{number}.so"
        target.write_bytes(built.read_bytes())
        made.append(target)
    return made


def short_service(pool, folder, dice):
    """Open a service on some files of the pool, work with one, close it all."""
    numbers = dice.sample(range(len(pool)), dice.randrange(1, 4))
    paths = [pool[at] for at in numbers]
    with PluginService(plugin_paths=paths, bundled=False, fsspec_fallback=False) as service:
        service.load()
        assert list(service.schemes()) == sorted(f"pool{at}" for at in numbers)
        at = dice.choice(numbers)
        fs = service.filesystem(f"pool{at}")
        filesystem_work.files(fs, f"pool{at}://h/{folder}", dice)


class CommonService:
    """A service that one thread replaces while others work with it. [any thread]"""

    def __init__(self, pool):
        self._pool = pool
        self._lock = threading.Lock()
        self._service = self._opened()

    def _opened(self):
        service = PluginService(plugin_paths=self._pool[:2], bundled=False)
        service.load()
        return service

    def work(self, folder, dice):
        """Work with what is there; that it closes meanwhile is all that may happen."""
        service = self._service
        with suppress(ClosedError):
            filesystem_work.files(service.filesystem("pool0"), f"pool0://h/{folder}", dice)
            return
        assert service.closed, "an open service says that it is closed"

    def replace(self):
        """Put a new service in the place of the old one, and close that."""
        with self._lock:
            old, self._service = self._service, self._opened()
        old.close()

    def close(self):
        """Close the last one."""
        self._service.close()


def named_loads(service, pool, folder):
    """Load files into a running service that were not there when it searched."""
    for number, file in enumerate(pool):
        copy = folder / f"libnew{number}.so"
        copy.write_bytes(file.read_bytes())
        service.load(copy)
        assert f"pool{number}" in service.schemes()
