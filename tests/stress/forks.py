"""Forks at random moments of a process whose threads use all of the package.

The child uses what it may: the filesystems of its parent, a service of its own, gfile, the log; and
what it may not, the devices of its parent. Then it closes, and ends as Python programs end. What it
does has to succeed or to raise an error of the package's, and to end in time; where it does not,
the stacks of its threads are shown.
"""

from __future__ import annotations

import faulthandler
import io
import logging
import os
import shutil
import sys
import tempfile
import threading
import time
import traceback
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

import modular_tf as mtf
from modular_tf.errors import ModularTFError
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.log_output import configure_logging
from tests.stress.filesystem_closes import watchful_plugin
from tests.stress.watched_child import begin_child, ending_of

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_CHILD_S = 40.0
LONGEST_PAUSE_S = 0.03
STEPS_OF_A_CHILD = 4
EXPECTED = (ModularTFError, ValueError)  # Python's own closed files raise a ValueError
_log = logging.getLogger("modular_tf.stress")


class World:
    """What the parent's threads use, and its children."""

    def __init__(self, folder: Path, dice: Random) -> None:
        self._folder = folder
        self._dice = dice
        self._plugins = folder / "plugins"
        self._plugins.mkdir()
        self._library = Path(watchful_plugin())
        shutil.copy(self._library, self._plugins)
        self.service = mtf.PluginService(plugin_dirs=[self._plugins])
        self.service.load()
        self._device = self.service.device("CPU:0")

    def _uri(self, scheme: str) -> str:
        name = self._dice.choice("abcd")
        roots = {"ram": "ram://", "watch": "watch://h/log-", "": f"{self._folder}/file-"}
        return roots[scheme] + name

    def files(self) -> None:
        """Write and read a file of any filesystem."""
        scheme = self._dice.choice(("ram", "watch", ""))
        fs, uri = self.service.filesystem(scheme), self._uri(scheme)
        with fs.open(uri, "wb") as stream:
            stream.write(b"content" * 100)
        with fs.new_random_access_file(uri) as reader:
            reader.read(0, 100)
        if scheme == "watch":  # of a file that others make shorter it would be gone
            bytes(fs.new_read_only_memory_region_from_file(uri).view())

    def paths(self) -> None:
        """Ask about paths, change them, list them."""
        scheme = self._dice.choice(("ram", "watch", ""))
        fs, uri = self.service.filesystem(scheme), self._uri(scheme)
        fs.path_exists(uri)
        with suppress(*EXPECTED):
            fs.rename_file(uri, uri + "2")
        fs.get_matching_paths(uri + "*")

    def gfile(self) -> None:
        """Use TensorFlow's names, and the default service behind them."""
        uri = self._uri(self._dice.choice(("ram", "")))
        with mtf.gfile.GFile(uri, "w") as file:
            file.write("text")
        mtf.gfile.exists(uri)
        mtf.gfile.glob(uri + "*")

    def by_fsspec(self) -> None:
        """Use a file by way of fsspec."""
        fs = ModularFileSystem("ram", service=self.service)
        with fs.open(self._uri("ram"), "wb") as file:
            file.write(b"content")

    def another_service(self) -> None:
        """Load all plugins into a service of its own, and close that."""
        with mtf.PluginService(plugin_paths=[str(self._library)]) as service:
            service.load()
            service.filesystem("watch").path_exists("watch://h/log")
            service.device("CPU:0").allocate(8).close()

    def refresh(self) -> None:
        """Look whether plugins have come, changed or gone, which one has, perhaps."""
        copy = self._plugins / "libmore.so"
        if self._dice.random() < 0.5:
            coming = copy.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
            shutil.copy(self._library, coming).replace(copy)
        else:
            copy.unlink(missing_ok=True)
        self.service.refresh()

    def devices(self) -> None:
        """Use the device: memory, streams, events, callbacks."""
        with self._device.create_stream() as stream, self._device.allocate(64) as memory:
            stream.memcpy_htod(memory, bytes(64))
            stream.add_callback(int)
            stream.record_event().wait()
        self._device.put(b"bytes", memory="host").to_numpy()

    def log(self) -> None:
        """Log something, and change what becomes of the log."""
        _log.warning("a line of the application")
        if self._dice.random() < 0.1:
            configure_logging("json", stream=io.StringIO())
        self.service.filesystem("watch").path_exists("watch://h/log")

    def reports(self) -> None:
        """Ask what there is."""
        self.service.report()
        self.service.schemes()
        self.service.devices()

    @property
    def jobs(self) -> list[Callable[[], None]]:
        """All that can be done."""
        return [
            self.files,
            self.paths,
            self.gfile,
            self.by_fsspec,
            self.another_service,
            self.refresh,
            self.devices,
            self.log,
            self.reports,
        ]

    def any_job(self) -> None:
        """Do one of these."""
        self._dice.choice(self.jobs)()


def work(job: Callable[[], None], enough: threading.Event) -> None:
    """Do a job until it is enough; what it may not raise ends the process."""
    while not enough.is_set():
        try:
            job()
        except EXPECTED:
            pass
        except BaseException:  # noqa: BLE001  (it is told, and ends the process)
            if enough.is_set():  # the folder that it works in is being removed
                return
            print(f"a thread of the parent: {traceback.format_exc()}", flush=True)
            os._exit(1)


def live_in_child(world: World, seed: int, said: int) -> None:
    """Do what a child may; the process then ends as usual, when the caller returns."""
    begin_child(said, LONGEST_CHILD_S)
    dice = Random(seed)
    for job in dice.sample(world.jobs, STEPS_OF_A_CHILD):
        print(job.__name__, flush=True)
        with suppress(*EXPECTED):
            job()
    if dice.random() < 0.5:
        print("close", flush=True)
        with suppress(*EXPECTED):
            world.service.close()
    print("end", flush=True)


def try_forks(world: World, rounds: int, dice: Random) -> int:
    """Fork at random moments; return how many children had a problem. A child ends in here."""
    found = 0
    for number in range(rounds):
        time.sleep(dice.uniform(0, LONGEST_PAUSE_S))
        said, its_seed = os.memfd_create("what a child says"), dice.getrandbits(32)
        child = os.fork()
        if child == 0:
            live_in_child(world, its_seed, said)
            raise SystemExit(0)
        if problem := ending_of(child, said, LONGEST_CHILD_S):
            found += 1
            print(f"fork {number}: {problem}", flush=True)
    return found


def main() -> None:
    """Run the campaign that the command line asks for."""
    rounds, seed = map(int, sys.argv[1:])
    dice = Random(seed)
    sys.setswitchinterval(0.0005)
    folder = Path(tempfile.mkdtemp(prefix="forks-"))
    faulthandler.enable()
    configure_logging("json", stream=io.StringIO())
    world = World(folder, dice)
    # What is imported late is imported now: a child cannot import what another thread of its parent
    # was importing, since Python does not free the locks of modules.
    for job in world.jobs * 5:
        with suppress(*EXPECTED):
            job()
    enough = threading.Event()
    for job in world.jobs:
        threading.Thread(target=work, args=(job, enough), daemon=True).start()
    found = try_forks(world, rounds, dice)
    print(f"{rounds} forks, {found} problems", flush=True)
    enough.set()
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1 if found else 0)  # its threads may go on


if __name__ == "__main__":
    main()
