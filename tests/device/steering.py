"""The steered plugin from Python: spoil it, load it, read what was called."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING, Any

from modular_tf.abi.layouts import Dialect, layout
from modular_tf.device.platform import DevicePlatform, load_device_platform
from modular_tf.loading.binding import bind
from modular_tf.loading.device_dialect import HOSTED
from modular_tf.loading.device_loader import RefusedDevicePluginError
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from modular_tf.native.library import Library

SOURCE = Path(__file__).parent / "steered_plugin.cc"

TABLES = (
    "SE_PlatformRegistrationParams",
    "SP_Platform",
    "SP_PlatformFns",
    "SP_DeviceFns",
    "SP_StreamExecutor",
    "SP_Device",
)
POINTERS = ("lent", "null", "own", "nowhere")

RAISES_STANDARD_EXCEPTION = -1
RAISES_INT = -2


def build_steered_plugin() -> Path:
    """Compile the plugin, once per machine."""
    return link_library("libsteered.so", [compile_object(SOURCE)], cxx=True)


class SteeredPlugin:
    """One mapped steered plugin; a process has one, so tests reset it."""

    def __init__(self, path: Path) -> None:
        self.library: Library = bind(str(path), [], frozenset())
        self._function("steer_reset", None)()

    def _function(self, name: str, result: Any, *arguments: Any) -> Any:
        address = self.library.symbol(name)
        assert address, name
        return ctypes.CFUNCTYPE(result, *arguments)(address)

    def set_field(
        self, table: str, name: str, value: int, dialect: Dialect | None = HOSTED
    ) -> None:
        """Put a value over a field after the plugin has filled its struct."""
        field = layout(table, dialect).field(name)
        self.set_bytes(table, field.offset, field.size, value)

    def set_bytes(self, table: str, offset: int, size: int, value: int) -> None:
        """Put a number anywhere over a struct."""
        kinds = ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_uint64
        self._function("steer_patch", None, *kinds)(TABLES.index(table), offset, size, value)

    def fail(self, operation: str, code: int, message: str = "told to fail") -> None:
        """Let a function fail with a code, or throw."""
        kinds = ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p
        self._function("steer_fail", None, *kinds)(operation.encode(), code, message.encode())

    def leave_size(self, table: str) -> None:
        """Leave a struct_size as the host has set it."""
        self._function("steer_silent", None, ctypes.c_int)(TABLES.index(table))

    def point(self, table: str, to: str) -> None:
        """Make the pointer to a struct NULL, one to the plugin's own struct, or a wild one."""
        kinds = ctypes.c_int, ctypes.c_int
        self._function("steer_pointer", None, *kinds)(TABLES.index(table), POINTERS.index(to))

    def set_count(self, count: int | None) -> None:
        """Report this count; None leaves the host's variable alone."""
        if count is None:
            self._function("steer_count_untouched", None)()
        else:
            self._function("steer_count", None, ctypes.c_int)(count)

    def fail_ordinal(self, ordinal: int) -> None:
        """Let create_device fail for one ordinal; -1 for none."""
        self._function("steer_failing_ordinal", None, ctypes.c_int)(ordinal)

    def text(self, text: bytes) -> int:
        """Return the address of a string in the plugin's memory."""
        function = self._function("steer_text", ctypes.c_void_p, ctypes.c_char_p)
        return int(function(text))

    @property
    def code(self) -> int:
        """The address of a function of the plugin."""
        return int(self._function("steer_code", ctypes.c_void_p)())

    @property
    def data(self) -> int:
        """The address of memory of the plugin that is no code."""
        return int(self._function("steer_data", ctypes.c_void_p)())

    @property
    def calls(self) -> list[str]:
        """What the host called, in order."""
        log: bytes = self._function("steer_log", ctypes.c_char_p)()
        return log.decode().split()

    def load(self) -> DevicePlatform:
        """Load the plugin's platform."""
        return load_device_platform(self.library, plugin_name="steered")

    def refusal(self) -> RefusedDevicePluginError:
        """Load the plugin, which must be refused, and return the error."""
        try:
            platform = self.load()
        except RefusedDevicePluginError as error:
            return error
        platform.close()
        raise AssertionError("the plugin was accepted")

    def refused_for(self) -> list[str]:
        """Return the ids of the errors for which the plugin is refused, in order."""
        return [found.rule_id for found in self.refusal().violations if found.is_error]

    def warned_of(self) -> list[str]:
        """Return the ids of the warnings with which the plugin is accepted."""
        with self.load() as platform:
            return [found.rule_id for found in platform.warnings]
