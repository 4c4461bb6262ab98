"""A filesystem that works, but for one misdeed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.check.job import Job, Limits
from modular_tf.check.outcome import Pass
from modular_tf.check.run import CheckProcesses
from modular_tf.check.target import Target
from tests.fixtures.compiler import compile_object, link_library

if TYPE_CHECKING:
    from collections.abc import Callable

_FOLDER = Path(__file__).parent
_FIRST_CONTACT = _FOLDER.parents[1] / "first_contact"
_THROW = _FOLDER.parents[1] / "plugins" / "throw.cc"
_REFERENCE = _FOLDER.parents[2] / "contrib" / "ram_filesystem" / "src"
_RENAMED = ("TF_InitPlugin=reference_init_plugin", 'MTF_RAM_SCHEME="misdeed"')

READS, RENAMES, READS_AGAIN = "FS-156", "FS-235", "FS-157"
GROUP = (READS, RENAMES, READS_AGAIN)
"""Three checks, of which the one in the middle alone renames a file."""


def misbehaving(deed: str, place: str = "RENAME") -> str:
    """Build the plugin with a misdeed of `tests/first_contact/misdeed.c`, and return its library.

    Args:
        deed: Which.
        place: RENAME, CONSTRUCTOR, INIT or CLEANUP.
    """
    macros = (f"MISDEED={deed}", f"PLACE={'SCHEME_INIT' if place == 'RENAME' else place}")
    objects = [compile_object(source, _RENAMED) for source in sorted(_REFERENCE.glob("*.cc"))]
    objects.append(compile_object(_FIRST_CONTACT / "misdeed.c", macros))
    objects += [compile_object(_THROW), compile_object(_FOLDER / "misbehaving.cc")]
    name = f"lib{deed.lower()}_at_{place.lower()}.so"
    options = ["-lpthread", f"-Wl,--version-script={_REFERENCE / 'exports.map'}"]
    return str(link_library(name, objects, options, cxx=True))


def without_server() -> str:
    """Build a plugin whose server never answers, and return its library; its scheme is misdeed."""
    objects = [compile_object(source, _RENAMED) for source in sorted(_REFERENCE.glob("*.cc"))]
    objects.append(compile_object(_FOLDER / "absent_store.cc"))
    options = ["-lpthread", f"-Wl,--version-script={_REFERENCE / 'exports.map'}"]
    return str(link_library("libabsent_store.so", objects, options, cxx=True))


def job_of(deed: str, place: str = "RENAME", checks: tuple[str, ...] = GROUP) -> Job:
    """Return the job of trying the plugin with a misdeed."""
    target = Target(misbehaving(deed, place), "filesystem", Pass.RAW, scheme="misdeed")
    return Job(target, "misdeed://", checks)


@pytest.fixture(scope="module")
def processes() -> CheckProcesses:
    """Processes that wait as long as checks say."""
    with CheckProcesses(Limits(jobs=2)) as started:
        yield started


@pytest.fixture
def outcomes_with(processes) -> Callable[..., list]:
    """Try a misdeed and return what became of the checks."""

    def run(*arguments, **options):
        (result,) = processes.run([job_of(*arguments, **options)])
        assert result.fault is None
        return result.outcomes

    return run
