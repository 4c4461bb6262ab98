"""Building the plugin of the dialects, and asking it what was called."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from modular_tf.abi.layouts import Dialect
from tests.device.controlled_plugin import ControlledPlugin
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
        objects = []
        for source in (_FOLDER / f"{name}.c" for name in _SOURCES):
            used = _macros_of(source)
            macros = {**values, **self.macros}.items()
            given = [f"{name}={value}" for name, value in macros if name in used]
            objects.append(compile_object(source, given))
        return link_library("libdialect.so", objects)


@cache
def _macros_of(source):
    """Return the words of a source and of what it includes, but for the defaults of macros.

    So an object is compiled once for all variants that do not concern it.
    """
    texts = [source.read_text(), (_FOLDER / "layouts.h").read_text()]
    if "DELIVER" in texts[0]:
        texts.append("SIZES FORM")
    return frozenset(re.findall(r"\w+", " ".join(texts)))


class DialectPlugin(ControlledPlugin):
    """A mapped plugin whose log starts empty."""

    def __init__(self, build):
        super().__init__(build.compile(), "dialect", "dialect_", reset="forget_calls")

    @property
    def calls(self):
        """What the host called, in order; STRANGE_x where it showed something else than before."""
        return self.text_of("calls").split()
