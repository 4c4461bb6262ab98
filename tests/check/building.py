"""The switchable plugins: a reference plugin each, with the one defect that is asked for.

`MODULAR_TF_FIXTURE_DEFECT` names the defect by the check that must find it; see `chosen_defect.h`,
and `defects.h` in their folders. Every `*.cc` there is part of them.

Most defects of filesystems are those of the plugin in memory; the few that need rights or links are
the local disk's, and those of plain names have a plugin of plain paths.
"""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.fixtures.compiler import compile_object, link_library

DEFECT_VARIABLE = "MODULAR_TF_FIXTURE_DEFECT"
"""Names the defect of the process that loads the plugin; unset for none."""

_FOLDER = Path(__file__).parent
_CONTRIB = _FOLDER.parents[1] / "contrib"
_COMPILERS_AT_ONCE = 2
_LISTED = re.compile(r'^\s*\{"([A-Z]{2}-\d{3})",', re.MULTILINE)


FIXTURES = ("filesystem", "local_filesystem", "plain_filesystem", "device", "kernel")
"""The switchable plugins."""


@dataclass(frozen=True)
class _Recipe:
    reference: str | None  # the folder below contrib; None: it has all it needs
    entry_point: str
    macros: tuple[str, ...]
    shared: tuple[str, ...] = ()  # sources of others, below this folder, with headers beside them


_RECIPES = {
    "filesystem": _Recipe("ram_filesystem", "TF_InitPlugin", ('MTF_RAM_SCHEME="defect"',)),
    "local_filesystem": _Recipe(
        "posix_filesystem",
        "TF_InitPlugin",
        ("_GNU_SOURCE", 'MTF_POSIX_SCHEMES="file"'),
        ("defective_filesystem/entry.cc", "defective_filesystem/sparse_table.cc"),
    ),
    "plain_filesystem": _Recipe(
        "posix_filesystem",
        "TF_InitPlugin",
        ("_GNU_SOURCE", 'MTF_POSIX_SCHEMES=""'),
        ("defective_filesystem/entry.cc",),
    ),
    "device": _Recipe(
        "host_device",
        "SE_InitPlugin",
        ('MTF_HOST_DEVICE_TYPE="DEFECT"', 'MTF_HOST_DEVICE_PLATFORM="DEFECT_CHIP"'),
    ),
    "kernel": _Recipe(None, "TF_InitKernel", ()),
}
_CHOICE = "defect_choice/chosen_defect.cc"


@cache
def defective_plugin(fixture):
    """Build a switchable plugin, one of `FIXTURES`, and return its library."""
    recipe = _RECIPES[fixture]
    own_folder = _source_folder(fixture)
    sources = own_folder if recipe.reference is None else _CONTRIB / recipe.reference / "src"
    renamed = (f"{recipe.entry_point}=reference_init_plugin", *recipe.macros)
    shared = [_FOLDER / name for name in (_CHOICE, *recipe.shared)]
    own = sorted(own_folder.glob("*.cc"))
    folders = sorted({source.parent for source in shared})
    of_reference = () if recipe.reference is None else sorted(sources.glob("*.c*"))
    public = [sources.parent / "include", _CONTRIB / "device_headers"]

    jobs = [(source, renamed, public) for source in of_reference]
    jobs += [(source, (), folders) for source in (*shared, *own)]
    with ThreadPoolExecutor(_COMPILERS_AT_ONCE) as compilers:
        objects = list(compilers.map(lambda job: compile_object(*job), jobs))
    # The map keeps the renamed entry point of the reference plugin inside.
    options = ["-lpthread", f"-Wl,--version-script={sources / 'exports.map'}"]
    return link_library(f"libdefective_{fixture}.so", objects, options, cxx=True)


def changed_ram_plugin(name, scheme, objects, options=()):
    """Link the reference plugin in memory, whose entry point is renamed, with other objects."""
    sources = _CONTRIB / "ram_filesystem" / "src"
    macros = ("TF_InitPlugin=reference_init_plugin", f'MTF_RAM_SCHEME="{scheme}"')
    reference = [compile_object(source, macros) for source in sorted(sources.glob("*.c*"))]
    # The map keeps all functions but the entry point inside, as in most plugins.
    linked = ["-lpthread", f"-Wl,--version-script={sources / 'exports.map'}", *options]
    return link_library(f"lib{name}.so", [*reference, *objects], linked, cxx=True)


def listed_defects(fixture):
    """Return the checks that a switchable plugin has a defect for, each as often as listed."""
    files = sorted(_source_folder(fixture).glob("defects_*.cc"))
    return [found for file in files for found in _LISTED.findall(file.read_text(encoding="utf-8"))]


def _source_folder(fixture):
    return _FOLDER / f"defective_{fixture}"
