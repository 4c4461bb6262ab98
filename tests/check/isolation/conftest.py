"""A filesystem that works, but for one misdeed."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.check.job import Job
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from tests.check.building import changed_ram_plugin
from tests.fixtures.compiler import compile_object

_FOLDER = Path(__file__).parent
_TESTS = _FOLDER.parents[1]

READS, RENAMES, READS_AGAIN = "FS-156", "FS-235", "FS-157"
GROUP = (READS, RENAMES, READS_AGAIN)
"""Three checks, of which the one in the middle alone renames a file."""


def misbehaving(deed, place="RENAME"):
    """Build the plugin with a misdeed of `tests/first_contact/misdeed.c`.

    Its place is RENAME, CONSTRUCTOR, INIT or CLEANUP.
    """
    macros = (f"MISDEED={deed}", f"PLACE={'SCHEME_INIT' if place == 'RENAME' else place}")
    sources = (_TESTS / "plugins" / "throw.cc", _FOLDER / "misbehaving.cc")
    objects = [
        compile_object(_TESTS / "first_contact" / "misdeed.c", macros),
        *map(compile_object, sources),
    ]
    return str(changed_ram_plugin(f"{deed.lower()}_at_{place.lower()}", "misdeed", objects))


def without_server():
    """Build a plugin whose server never answers; its scheme is misdeed."""
    objects = [compile_object(_FOLDER / "absent_store.cc")]
    return str(changed_ram_plugin("absent_store", "misdeed", objects))


def job_of(deed, place="RENAME", checks=GROUP):
    target = Target(misbehaving(deed, place), "filesystem", Pass.RAW, scheme="misdeed")
    return Job(target, "misdeed://", checks)


@pytest.fixture
def outcomes_with(processes):
    def run(*arguments, **options):
        (result,) = processes.run([job_of(*arguments, **options)])
        assert result.fault is None
        return result.outcomes

    return run
