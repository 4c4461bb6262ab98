"""The steered plugin from Python: spoil it, load it, read what was called."""

from __future__ import annotations

from ctypes import c_size_t, c_uint64, c_void_p
from pathlib import Path

from modular_tf.abi.layouts import layout
from modular_tf.loading.device_dialect import HOSTED
from tests.device.controlled_plugin import ControlledPlugin
from tests.fixtures.compiler import compile_object, link_library

_SOURCE = Path(__file__).parent / "steered_plugin.cc"

TABLES = (
    "SE_PlatformRegistrationParams",
    "SP_Platform",
    "SP_PlatformFns",
    "SP_DeviceFns",
    "SP_StreamExecutor",
    "SP_Device",
)
_POINTERS = ("lent", "null", "own", "nowhere")

RAISES_STANDARD_EXCEPTION = -1
RAISES_INT = -2


def build_steered_plugin():
    """Compile the plugin, once per machine."""
    return link_library("libsteered.so", [compile_object(_SOURCE)], cxx=True)


class SteeredPlugin(ControlledPlugin):
    def __init__(self, path):
        super().__init__(path, "steered", "steer_")

    def set_field(self, table, name, value):
        """Put a value over a field after the plugin has filled its struct."""
        field = layout(table, HOSTED).field(name)
        self.set_bytes(table, field.offset, field.size, value)

    def set_bytes(self, table, offset, size, value):
        """Put a number anywhere over a struct."""
        numbers = c_size_t(offset), c_size_t(size), c_uint64(value)
        self.call("patch", TABLES.index(table), *numbers)

    def fail(self, operation, code, message="told to fail"):
        """Let a function fail with a code, or throw."""
        self.call("fail", operation, int(code), message)

    def point(self, table, to):
        """Make the pointer to a struct NULL, one to the plugin's own struct, or a wild one."""
        self.call("pointer", TABLES.index(table), _POINTERS.index(to))

    def set_count(self, count):
        """Report this count; None leaves the host's variable alone."""
        if count is None:
            self.call("count_untouched")
        else:
            self.call("count", count)

    def text(self, text):
        """Return the address of a string in the plugin's memory."""
        return self.call("text", text, result=c_void_p)

    @property
    def calls(self):
        """What the host called, in order."""
        return self.text_of("log").split()

    def refused_for(self):
        """Return the ids of the errors for which the plugin is refused, in order."""
        return [found.rule_id for found in self.refusal().violations if found.is_error]

    def warned_of(self):
        """Return the ids of the warnings with which the plugin is accepted."""
        with self.load() as platform:
            return [found.rule_id for found in platform.warnings]
