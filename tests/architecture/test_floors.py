"""Imports run downwards only (`floors.toml`), and some doors are for one room only."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
import tomli

from tests.architecture.imports import NAME, PACKAGE, Import, imports_of, modules, room_of

FLOORS = tomli.loads(Path(__file__).with_name("floors.toml").read_text(encoding="utf-8"))
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS["floor"]) for room in floor["rooms"]}

COMPILED = f"{NAME}.native._core"
# Modules through which Python reaches into native memory.
NATIVE_DOORS = {"cffi", "ctypes", "mmap", "_cffi_backend"}
# The packages that may do so: the host's, and the raw access to slots of the conformance kit.
NATIVE_PACKAGES = (f"{NAME}.native", f"{NAME}.check.native")

# The commands of the conformance kit, which import it when they run.
KIT_COMMANDS = {f"{NAME}.cli.{module}" for module in ("check", "device_smoke", "new", "plugins")}


ROOMS = {
    path.stem
    for path in PACKAGE.iterdir()
    if path.suffix == ".py" or (path / "__init__.py").is_file()
} - {"__init__"}


@cache
def imports_between_rooms() -> tuple[Import, ...]:
    return tuple(
        found
        for module in modules()
        if module.room
        for found in imports_of(module)
        if found.imported.startswith(f"{NAME}.")
        # The package itself, as opposed to a room of it, is nothing but a list of names.
        and room_of(found.imported) in ROOMS
        and room_of(found.imported) != module.room
    )


def test_every_room_has_one_floor():
    listed = [room for floor in FLOORS["floor"] for room in floor["rooms"]]

    assert sorted(listed) == sorted(ROOMS), "floors.toml does not list what there is"


def test_imports_run_downwards():
    wrong = [
        str(found)
        for found in imports_between_rooms()
        if FLOOR_OF[room_of(found.module)] >= FLOOR_OF[room_of(found.imported)]
    ]

    assert wrong == []
    assert any(found.for_types for found in imports_between_rooms())  # else it would see none


@pytest.mark.parametrize("room", ["device", "kernel"])
def test_no_modules_of_a_room_import_each_other_in_a_circle(room):
    """Not even for type checkers, nor late."""
    inside = {module.name: module for module in modules() if module.room == room}
    below = {
        name: {
            target
            for found in imports_of(module)
            for target in (found.imported, found.imported.rpartition(".")[0])
            if target in inside and target != name
        }
        for name, module in inside.items()
    }
    while leaves := {name for name, imported in below.items() if not imported}:
        below = {name: found - leaves for name, found in below.items() if name not in leaves}

    assert len(inside) > 10
    assert below == {}


def test_only_the_commands_of_the_conformance_kit_import_it():
    importers = {
        found.module for found in imports_between_rooms() if room_of(found.imported) == "check"
    }

    assert importers - KIT_COMMANDS == set()


def test_only_native_imports_the_compiled_module():
    outside = [
        str(found)
        for module in modules()
        if module.room != "native"
        for found in imports_of(module)
        if found.imported.startswith(COMPILED)
    ]

    assert outside == []


def test_only_native_packages_reach_native_memory():
    outside = [
        str(found)
        for module in modules()
        if not module.name.startswith(NATIVE_PACKAGES)
        for found in imports_of(module)
        if found.imported.partition(".")[0] in NATIVE_DOORS and not found.for_types
    ]

    assert outside == []
