"""Building a fixture plugin: one binary per variant, from sources that they share."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING

from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.matrix import FOLDER, Variant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

# Built with the plugin on request only, never with all variants.
_NOT_SHARED = {"companion.c", "entry.c"}


def build_plugin(
    variant: Variant,
    settings: Mapping[str, str],
    more: Sequence[Path] = (),
    more_options: Sequence[str] = (),
) -> Path:
    """Build a variant and return its library, which lies in a folder of its own.

    Args:
        variant: Which one.
        settings: String macros of the entry point, as `FIXTURE_SCHEME`.
        more: More objects, which are linked into it.
        more_options: More options for the linker.
    """
    folder = FOLDER / variant.family
    strings = {"FIXTURE_VARIANT": variant.registers, **settings}
    macros = [f"{name}={json.dumps(value)}" for name, value in strings.items()]
    objects = [compile_object(folder / "entry.c", (*macros, *variant.defines))]
    shared = (source for source in folder.glob("*.c") if source.name not in _NOT_SHARED)
    objects += [compile_object(source) for source in sorted(shared)]
    objects += [compile_object(FOLDER / "report.c")]
    objects += [compile_object(folder / source) for source in variant.sources]
    objects += more
    name = f"libfixture_{variant.family}_{variant.name.replace('-', '_')}.so"
    options = ["-lpthread", *_dependencies(variant), *more_options]
    plugin = link_library(name, objects, options, cxx=bool(variant.sources))
    if variant.companion:
        _place_companion(plugin)
    return plugin


def _dependencies(variant: Variant) -> list[str]:
    """Return the linker's options for the libraries that the plugin shall need."""
    options = []
    if variant.needed:
        options.append(str(framework_stub(variant.needed, version=variant.versioned)))
    if variant.companion:
        options += [str(companion()), "-Wl,-rpath,$ORIGIN"]
    return options


def framework_stub(soname: str, *, version: str = "") -> Path:
    """Build the library that a plugin is linked with in TensorFlow's place.

    Args:
        soname: Its name.
        version: The version of its symbols; there is a map for it beside this file.
    """
    stub = compile_object(FOLDER / "framework_stub.c")
    options = [f"-Wl,-soname,{soname}"]
    if version:
        options.append(f"-Wl,--version-script={FOLDER / f'framework_stub_{version}.map'}")
    return link_library(soname, [stub], options)


def companion() -> Path:
    """Build the library of the plugin's own that the variant `companion` needs."""
    name = "libfixture_companion.so"
    made = compile_object(FOLDER / "filesystem" / "companion.c")
    return link_library(name, [made], [f"-Wl,-soname,{name}"])


def _place_companion(plugin: Path) -> None:
    with suppress(FileExistsError):
        os.link(companion(), plugin.parent / companion().name)
