"""The switchable plugins: a reference plugin each, with the one defect that is asked for.

`MODULAR_TF_FIXTURE_DEFECT` names the defect by the check that must find it; see `defects.h` in
their folders. Every `*.cc` there is part of them.
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


@dataclass(frozen=True)
class _Recipe:
    reference: str  # the folder below contrib
    entry_point: str
    macros: tuple[str, ...]


_RECIPES = {
    "filesystem": _Recipe("ram_filesystem", "TF_InitPlugin", ('MTF_RAM_SCHEME="defect"',)),
    "device": _Recipe(
        "host_device",
        "SE_InitPlugin",
        ('MTF_HOST_DEVICE_TYPE="DEFECT"', 'MTF_HOST_DEVICE_PLATFORM="DEFECT_CHIP"'),
    ),
}


@cache
def defective_plugin(kind: str) -> Path:
    """Build the switchable plugin of a kind, `filesystem` or `device`, and return its library."""
    recipe = _RECIPES[kind]
    sources = _CONTRIB / recipe.reference / "src"
    renamed = (f"{recipe.entry_point}=reference_init_plugin", *recipe.macros)
    jobs = [(source, renamed) for source in sorted(sources.glob("*.cc"))]
    jobs += [(source, ()) for source in sorted(_source_folder(kind).glob("*.cc"))]
    with ThreadPoolExecutor(_COMPILERS_AT_ONCE) as compilers:
        objects = list(compilers.map(lambda job: compile_object(*job), jobs))
    # The map keeps the renamed entry point of the reference plugin inside.
    options = ["-lpthread", f"-Wl,--version-script={sources / 'exports.map'}"]
    return link_library(f"libdefective_{kind}.so", objects, options, cxx=True)


def listed_defects(kind: str) -> list[str]:
    """Return the checks that the switchable plugin of a kind has a defect for, as its sources say.

    One that is listed twice is returned twice.
    """
    files = sorted(_source_folder(kind).glob("defects_*.cc"))
    return [found for file in files for found in _LISTED.findall(file.read_text(encoding="utf-8"))]


def _source_folder(kind: str) -> Path:
    return _FOLDER / f"defective_{kind}"
