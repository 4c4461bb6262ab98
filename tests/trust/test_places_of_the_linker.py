"""What the linker takes with a plugin is judged and locked, wherever a library directs it.

Each library leaves a trace by its constructor. Plugins are loaded in a process of their own,
without having been tried before.
"""

import hashlib
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.fixtures.matrices import sampled
from tests.trust.opening import opened_library, opening_plugin

HIDDEN = """
    import os
    os.environ.pop("LD_LIBRARY_PATH")
"""


class Case(NamedTuple):
    """A plugin, the library that comes with it, and the variables with which it does."""

    plugin: Path
    library: Path
    environment: dict[str, str]


def plain(folder):
    library = opened_library(folder / "libs/libbrought.so", soname="libbrought.so")
    options = ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}"]
    return Case(opening_plugin(folder / "libx.so", options=options), library, {})


def filtered(folder, tag="-f"):
    library = opened_library(folder / "libs/libbrought.so")
    options = [f"-Wl,{tag},libbrought.so", f"-Wl,-rpath,{library.parent}"]
    return Case(opening_plugin(folder / "libx.so", options=options), library, {})


def filtered_by_companion(folder):
    library = opened_library(folder / "libs/libbrought.so")
    options = ["-Wl,-f,libbrought.so", f"-Wl,-rpath,{library.parent}"]
    companion = opening_plugin(folder / "libs/libcompanion.so", options=options)
    options = ["-Wl,--no-as-needed", str(companion), f"-Wl,-rpath,{library.parent}"]
    return Case(opening_plugin(folder / "libx.so", options=options), library, {})


def by_library_path(folder, name="libbrought.so", tag=None):
    """The program takes the variable away, and its linker goes on with it."""
    library = opened_library(folder / "libs" / name, soname=name)
    options = ["-Wl,--no-as-needed", str(library)] if tag is None else [f"-Wl,{tag},{name}"]
    plugin = opening_plugin(folder / "libx.so", options=options)
    return Case(plugin, library, {"LD_LIBRARY_PATH": str(library.parent), "first": HIDDEN})


CASES = {
    "needed": (plain,),
    "auxiliary": (filtered,),
    "filter": (filtered, "-F"),
    "filter of a companion": (filtered_by_companion,),
    "LD_LIBRARY_PATH": (by_library_path,),
    "by a name of the system's": (by_library_path, "libanl.so.1"),
    "auxiliary by that name": (by_library_path, "libanl.so.1", "-f"),
}
_SAMPLE = ["filter", "filter of a companion", "auxiliary by that name"]


def without_code(environment):
    return {name: value for name, value in environment.items() if name.isupper()}


@pytest.mark.parametrize("case", sampled(CASES, _SAMPLE))
def test_what_comes_along_is_found_judged_and_locked(case, load, lock_by_command, traces, tmp_path):
    make, *given = CASES[case]
    plugin, library, environment = make(tmp_path, *given)
    lock = lock_by_command(plugin, **without_code(environment))

    for policy in ({}, {"lock": lock}):
        assert load(plugin, **policy, **environment)[0].outcome == ("loaded",)
        assert {"init", "opened"} <= set(traces.names)

    traces.clear()
    library.parent.chmod(0o777)
    [refused] = load(plugin, **environment)
    assert (refused.outcome, traces.names) == (("rejected", "LD-076"), [])
    assert str(library.parent) in refused.message

    library.parent.chmod(0o755)
    altered = opened_library(tmp_path / "altered.so", "evil", soname=library.name)
    altered.replace(library)
    [refused] = load(plugin, lock=lock, **environment)
    assert (refused.outcome, traces.names) == (("rejected", "LD-080"), [])
    assert hashlib.sha256(library.read_bytes()).hexdigest() in refused.message
