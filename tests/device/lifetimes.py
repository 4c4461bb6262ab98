"""The lifetime plugin from Python: hold its functions, and read what was used too late."""

from __future__ import annotations

import ctypes
import threading
import time
from contextlib import contextmanager
from pathlib import Path

from tests.device.controlled_plugin import ControlledPlugin
from tests.fixtures.compiler import compile_object, link_library

_SOURCE = Path(__file__).parent / "lifetime_plugin.cc"
_KINDS = (
    "device", "device memory", "event", "host memory", "stream", "timer", "unified memory",
)  # fmt: skip


def build_lifetime_plugin():
    """Compile the plugin, once per machine."""
    return link_library("liblifetime.so", [compile_object(_SOURCE)], cxx=True)


def await_ends():
    """Wait for the threads that end streams and devices."""
    while any(thread.name.startswith("end of ") for thread in threading.enumerate()):
        time.sleep(0.0005)


class LifetimePlugin(ControlledPlugin):
    def __init__(self, path):
        super().__init__(path, "lifetime", "life_")

    @contextmanager
    def platform(self, memory=None):
        """Load the plugin's platform; in the end nothing is held and it is closed."""
        with self.load(memory) as platform:
            try:
                yield platform
            finally:
                self.let_all_go()

    def hold(self, name, most=1000):
        """Let the next calls of a function wait at its begin, or with "work" what streams do."""
        self.call("hold", name, most)

    def wait_until_held(self, name, *threads):
        """Wait until a call waits there, or the threads that could come there have ended."""
        while not self.call("held", name, result=ctypes.c_int):
            if threads and not any(thread.is_alive() for thread in threads):
                return
            time.sleep(0.0005)

    @property
    def outstanding(self):
        """How many pieces of work all streams have."""
        return self.call("outstanding", result=ctypes.c_int)

    def alive(self, kind):
        """Return how many objects of a kind were made and not given back."""
        return self.call("alive", kind, result=ctypes.c_int)

    @property
    def left(self):
        """What was made and not given back, by kind, without what there is none of."""
        return {kind: n for kind in _KINDS if (n := self.alive(kind))}

    @property
    def faults(self):
        """What was used after it had been given back, or given back out of order."""
        return self.text_of("faults").splitlines()
