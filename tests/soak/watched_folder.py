"""A folder that a service watches, into which files are dropped, replaced and removed at random."""

from __future__ import annotations

import random
import threading
import time

from modular_tf.errors import ClosedError, ModularTFError, PluginError, UnimplementedError
from modular_tf.service.service import PluginService
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants
from tests.soak import filesystem_work

_PLACES = 3
_VERSIONS = 2


class WatchedFolder:
    """The folder, its service, and the files that come to lie in it. [any thread]

    Args:
        folder: Where all of it is made; it exists.
    """

    def __init__(self, folder):
        self._source, self._drop = folder / "versions", folder / "watched"
        self._source.mkdir()
        self._drop.mkdir()
        for place in range(_PLACES):
            self._build(place)
        self._locks = [threading.Lock() for _ in range(_PLACES)]
        self._service = PluginService(plugin_dirs=[self._drop], bundled=False)
        self._service.load()
        self._watch = self._service.watch()

    def _build(self, place):
        names = {"FIXTURE_SCHEME": f"watched{place}"}
        content = build_plugin(variants("filesystem")["good"], names).read_bytes()
        for version in range(_VERSIONS):  # bytes behind the end make it another file
            (self._source / f"{place}-{version}").write_bytes(content + bytes(version))

    def change(self, dice):
        """Drop a file, put another in its place, or remove it."""
        place = dice.randrange(_PLACES)
        target = self._drop / f"libwatched{place}.so"
        with self._locks[place]:
            if dice.random() < 0.3:
                target.unlink(missing_ok=True)
                return
            content = (self._source / f"{place}-{dice.randrange(_VERSIONS)}").read_bytes()
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
        fs = self._service.filesystem(scheme)
        filesystem_work.files(fs, f"{scheme}://h/{folder}", dice)

    def close(self):
        """Let the folder come to rest: what lies there in the end must serve. Then end it all.

        Raises:
            ModularTFError: Something does not serve after a minute.
        """
        deadline = time.monotonic() + 60
        for place in range(_PLACES):
            content = (self._source / f"{place}-0").read_bytes()
            (self._drop / f"libwatched{place}.so").write_bytes(content)
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
