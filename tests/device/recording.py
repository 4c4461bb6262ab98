"""The recording plugin from Python: choose how it behaves, read what was called."""

from __future__ import annotations

import ctypes
from enum import IntEnum
from pathlib import Path

from tests.device.controlled_plugin import ControlledPlugin
from tests.fixtures.compiler import compile_object, link_library

_SOURCE = Path(__file__).parent / "recording_plugin.cc"

THROWS = -1
LEAVES_OUTPUTS_ALONE = -2


class Callbacks(IntEnum):
    """How the plugin calls back."""

    AT_ONCE = 0
    ON_THREAD = 1
    REFUSED = 2
    DROPPED = 3
    REFUSED_AND_CALLED = 4
    TWICE = 5


def build_recording_plugin(name="librecording.so"):
    """Compile the plugin, once per machine; under another name it is another plugin."""
    return link_library(name, [compile_object(_SOURCE)], cxx=True)


class RecordingPlugin(ControlledPlugin):
    def __init__(self, path):
        super().__init__(path, "recording", "record_")

    @property
    def calls(self):
        """What was called, in order."""
        return self.text_of("log").splitlines()

    def count(self, slot):
        """Return how often a slot was called."""
        return sum(call.split()[0] == slot for call in self.calls)

    def record_into(self, other, prefix):
        """Log into the other plugin's log from now on, each entry after a prefix."""
        log = ctypes.c_void_p(other.call("journal", result=ctypes.c_void_p))
        self.into(log, prefix)

    def leave_out(self, *slots):
        """Load the plugin without some slots."""
        for slot in slots:
            self.call("leave_out", slot)

    def use_bfc_allocator(self, mebibytes=1 << 20, *, force_growth=True):
        """Load the plugin as one that has so much memory, and wants it cut by the host."""
        self.call("use_bfc_allocator", mebibytes, int(force_growth))

    @property
    def allocated(self):
        """How many memories of any kind are alive."""
        return self.call("allocated", result=ctypes.c_int64)
