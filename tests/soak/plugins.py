"""Plugins that come and go: a pool of files, a service in common, and a folder that is watched.

Libraries are never unmapped, and a file is mapped once for all services: so that memory can stay
flat, files are drawn from a pool.
"""

from __future__ import annotations

import random
import threading
import time
from contextlib import suppress

from modular_tf.errors import ClosedError, ModularTFError, PluginError, UnimplementedError
from modular_tf.service.service import PluginService
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants
from tests.soak import work

_POOL = 6
_PLACES = 3
_VERSIONS = 2


def _content(scheme):
    """Return a fixture plugin that serves a scheme."""
    return build_plugin(variants("filesystem")["good"], {"FIXTURE_SCHEME": scheme}).read_bytes()


def build_pool(folder):
    """Return plugin files, each of a scheme of its own: pool0, pool1 ..."""
    pool = [folder / f"libpool{number}.so" for number in range(_POOL)]
    for number, file in enumerate(pool):
        file.write_bytes(_content(f"pool{number}"))
    return pool


def short_service(pool, folder, dice):
    """Open a service on some files of the pool, work with one, close it all."""
    numbers = dice.sample(range(len(pool)), dice.randrange(1, 4))
    paths = [pool[at] for at in numbers]
    with PluginService(plugin_paths=paths, bundled=False, fsspec_fallback=False) as service:
        service.load()
        assert list(service.schemes()) == sorted(f"pool{at}" for at in numbers)
        at = dice.choice(numbers)
        work.files(service.filesystem(f"pool{at}"), f"pool{at}://h/{folder}", dice)


def named_loads(service, pool, folder):
    """Load files into a running service that were not there when it searched."""
    for number, file in enumerate(pool):
        copy = folder / f"libnew{number}.so"
        copy.write_bytes(file.read_bytes())
        service.load(copy)
        assert f"pool{number}" in service.schemes()


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
            work.files(service.filesystem("pool0"), f"pool0://h/{folder}", dice)
            return
        assert service.closed, "an open service says that it is closed"

    def replace(self):
        """Put a new service in the place of the old one, and close that."""
        with self._lock:
            old, self._service = self._service, self._opened()
        old.close()

    def close(self):
        self._service.close()


class WatchedFolder:
    """A watched folder, into which files are dropped, replaced and removed. [any thread]"""

    def __init__(self, folder):
        self._drop = folder / "watched"
        self._drop.mkdir()
        # Bytes behind the end make it another file.
        contents = [_content(f"watched{place}") for place in range(_PLACES)]
        self._versions = [[c + bytes(version) for version in range(_VERSIONS)] for c in contents]
        self._locks = [threading.Lock() for _ in range(_PLACES)]
        self._service = PluginService(plugin_dirs=[self._drop], bundled=False)
        self._service.load()
        self._watch = self._service.watch()

    def _file(self, place):
        return self._drop / f"libwatched{place}.so"

    def change(self, dice):
        """Drop a file, put another in its place, or remove it."""
        place = dice.randrange(_PLACES)
        target = self._file(place)
        with self._locks[place]:
            if dice.random() < 0.3:
                target.unlink(missing_ok=True)
                return
            content = dice.choice(self._versions[place])
            if dice.random() < 0.5:
                coming = target.with_suffix(".coming")
                coming.write_bytes(content)
                coming.replace(target)
            else:
                target.write_bytes(content)

    def work(self, folder, dice):
        """Work with a plugin that may not be there, or go meanwhile: nothing else may happen."""
        try:
            self._use(dice.randrange(_PLACES), folder, dice)
        except (UnimplementedError, ClosedError):
            if self._service.closed:
                raise
        except PluginError as error:  # between the check and the first use it was replaced, or went
            if error.rule != "LD-082" and not isinstance(error.__cause__, FileNotFoundError):
                raise

    def _use(self, place, folder, dice):
        scheme = f"watched{place}"
        work.files(self._service.filesystem(scheme), f"{scheme}://h/{folder}", dice)

    def close(self):
        """Let the folder come to rest: what lies there in the end must serve within a minute."""
        deadline = time.monotonic() + 60
        for place, versions in enumerate(self._versions):
            self._file(place).write_bytes(versions[0])
        for place in range(_PLACES):
            self._wait_for(place, deadline)
        self._watch.close()
        self._service.close()

    def _wait_for(self, place, deadline):
        while True:
            try:
                self._use(place, "last", random.Random(place))
            except ModularTFError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return
