"""Building the plugin of the dialects, and asking it what was called."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from modular_tf.abi.layouts import Dialect
from modular_tf.device.platform import DevicePlatform, load_device_platform
from modular_tf.loading.binding import bind
from modular_tf.loading.device_loader import RefusedDevicePluginError
from tests.fixtures.compiler import compile_object, link_library

_FOLDER = Path(__file__).parent
_SOURCES = ("plugin", "executor", "allocators")

LAYOUTS = {
    Dialect.DEVICE_RFC: 2020,
    Dialect.DEVICE_V205: 205,
    Dialect.DEVICE_V207: 207,
    Dialect.DEVICE_V209: 209,
}
FORMS = ("FILLS", "ASSIGNS", "SAVED", "OWN")


@dataclass(frozen=True)
class Build:
    """What is compiled; `macros` as `variant.h` lists them."""

    dialect: Dialect
    sizes: bool = True
    form: str = "FILLS"
    macros: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        sizes = "sizes" if self.sizes else "silent"
        return f"{self.dialect.value}-{sizes}-{self.form.lower()}"

    def compile(self) -> Path:
        """Return the library."""
        values = {"LAYOUT": LAYOUTS[self.dialect], "SIZES": int(self.sizes), "FORM": self.form}
        macros = [f"{name}={value}" for name, value in {**values, **self.macros}.items()]
        objects = [compile_object(_FOLDER / f"{name}.c", macros) for name in _SOURCES]
        return link_library("libdialect.so", objects)


class DialectPlugin:
    """A mapped plugin whose log starts empty."""

    def __init__(self, build: Build) -> None:
        self.build = build
        self.library = bind(str(build.compile()), [], frozenset())
        self._call("dialect_forget_calls", None)

    def _call(self, name: str, result: Any) -> Any:
        address = self.library.symbol(name)
        assert address, name
        return ctypes.CFUNCTYPE(result)(address)()

    @property
    def calls(self) -> list[str]:
        """What the host called, in order; STRANGE_x where it showed something else than before."""
        log: bytes = self._call("dialect_calls", ctypes.c_char_p)
        return log.decode().split()

    def exhaust(self) -> None:
        """Let the RFC's allocators have no more memory."""
        self._call("dialect_exhaust", None)

    def recover(self) -> None:
        """Let them have memory again."""
        self._call("dialect_recover", None)

    def load(self) -> DevicePlatform:
        """Load the platform."""
        return load_device_platform(self.library, plugin_name="dialect")

    def refusal(self) -> RefusedDevicePluginError:
        """Load the plugin, which must be refused, and return the error."""
        try:
            platform = self.load()
        except RefusedDevicePluginError as error:
            return error
        platform.close()
        raise AssertionError("the plugin was accepted")
