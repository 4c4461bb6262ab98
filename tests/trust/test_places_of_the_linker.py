"""What the linker takes with a plugin is judged and locked, wherever a library directs it.

Each library leaves a trace by its constructor. Plugins are loaded in a process of their own,
without having been tried before.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.discovery.linker_words import linker_words
from tests.trust.opening import opened_library, opening_plugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LOAD = """
    import json, sys
    from modular_tf.service.configuration import Config
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.service import PluginService

    plugin, lock = json.loads(sys.argv[1])
    policy = TrustPolicy(frozen=lock is not None, lock=lock)
    config = Config(first_contact="never", load="eager", trust=policy)
    with PluginService(config=config, plugin_paths=[plugin], bundled=False) as service:
        (record,) = service.load().plugins
    reasons = [*record.reasons, *record.warnings]
    print(json.dumps([record.state.value, [[r.rule, r.message] for r in reasons]]))
"""
_NO_PROCESSES = """
    import errno, os, subprocess

    def fail(*_, **__):
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
    subprocess.Popen = fail
"""
_LEVELS = tuple(name for name in linker_words().subdirectories if name.startswith("glibc-hwcaps"))
_LEGACY = tuple(name for name in linker_words().subdirectories if "hwcaps" not in name)


class Case(NamedTuple):
    """A plugin, the library that comes with it, and the variables with which it does."""

    plugin: Path
    library: Path
    environment: dict[str, str]


@pytest.fixture
def traces(tmp_path: Path) -> Path:
    folder = tmp_path / "traces"
    folder.mkdir()
    return folder


@pytest.fixture
def load(run_python, traces):
    """Load the plugin of a case in a new process; return what became of it, and the traces."""

    def run(case: Case, lock: Path | None = None):
        for trace in traces.iterdir():
            trace.unlink()
        given = json.dumps([str(case.plugin), None if lock is None else str(lock)])
        env = {"TRACES": str(traces), **case.environment}
        state, reasons = json.loads(run_python(_LOAD, given, env=env).stdout)
        return state, reasons, sorted(entry.name for entry in traces.iterdir())

    return run


@pytest.fixture
def locked(run_python, tmp_path):
    """Write the lock file of a case by the command, without loading anything."""

    def write(case: Case) -> Path:
        path = tmp_path / "plugins.lock"
        arguments = ["--plugin", str(case.plugin), "--no-bundled", "lock", "--output", str(path)]
        code = f"from modular_tf.cli.main import run; raise SystemExit(run({arguments!r}))"
        run_python(code, env=case.environment)
        return path

    return write


def plain(tmp_path: Path) -> Case:
    library = opened_library(tmp_path / "libs/libbrought.so", soname="libbrought.so")
    options = ["-Wl,--no-as-needed", str(library), f"-Wl,-rpath,{library.parent}"]
    return Case(opening_plugin(tmp_path / "libx.so", options=options), library, {})


def filtered(tag: str, soname: str = "") -> Callable[[Path], Case]:
    def make(tmp_path: Path) -> Case:
        library = opened_library(tmp_path / "libs/libbrought.so", soname=soname)
        options = [f"-Wl,{tag},libbrought.so", f"-Wl,-rpath,{library.parent}"]
        return Case(opening_plugin(tmp_path / "libx.so", options=options), library, {})

    return make


def filtered_by_companion(tmp_path: Path) -> Case:
    library = opened_library(tmp_path / "libs/libbrought.so")
    options = ["-Wl,-f,libbrought.so", f"-Wl,-rpath,{library.parent}"]
    companion = opening_plugin(tmp_path / "libs/libcompanion.so", options=options)
    options = ["-Wl,--no-as-needed", str(companion), f"-Wl,-rpath,{library.parent}"]
    return Case(opening_plugin(tmp_path / "libx.so", options=options), library, {})


def only_for_processor(below: str) -> Callable[[Path], Case]:
    def make(tmp_path: Path) -> Case:
        case = plain(tmp_path)
        place = case.library.parent / below / case.library.name
        place.parent.mkdir(parents=True)
        return case._replace(library=case.library.rename(place))

    return make


def by_library_path(tmp_path: Path) -> Case:
    library = opened_library(tmp_path / "libs/libbrought.so", soname="libbrought.so")
    options = ["-Wl,--no-as-needed", str(library)]
    plugin = opening_plugin(tmp_path / "libx.so", options=options)
    return Case(plugin, library, {"LD_LIBRARY_PATH": str(library.parent)})


CASES = {
    "needed": plain,
    "auxiliary": filtered("-f"),
    "auxiliary with a SONAME": filtered("-f", "libbrought.so"),
    "filter": filtered("-F"),
    "filter of a companion": filtered_by_companion,
    "LD_LIBRARY_PATH": by_library_path,
    **{below: only_for_processor(below) for below in (*_LEVELS, *_LEGACY)},
}
every_case = pytest.mark.parametrize("make", CASES.values(), ids=CASES.keys())


@every_case
def test_it_is_found_and_mapped(make, load, tmp_path):
    state, reasons, traces = load(make(tmp_path))

    assert (state, reasons) == ("loaded", [])
    assert {"init", "opened"} <= set(traces)


@every_case
def test_what_strangers_can_change_is_refused_unopened(make, load, tmp_path):
    case = make(tmp_path)
    case.library.parent.chmod(0o777)

    state, [[rule, message]], traces = load(case)

    assert (state, rule, traces) == ("rejected", "LD-076", [])
    assert str(case.library.parent) in message


@every_case
def test_what_was_altered_is_refused_unopened_where_plugins_are_frozen(
    make, load, locked, tmp_path
):
    case = make(tmp_path)
    lock = locked(case)
    assert load(case, lock)[:2] == ("loaded", [])

    altered = opened_library(tmp_path / "altered.so", "evil", soname="libbrought.so")
    shutil.copy(altered, case.library)
    state, [[rule, message]], traces = load(case, lock)

    assert (state, rule, traces) == ("rejected", "LD-080", [])
    assert hashlib.sha256(case.library.read_bytes()).hexdigest() in message


@pytest.mark.parametrize("below", [*_LEVELS, *_LEGACY])
def test_what_is_put_in_front_of_a_companion_is_refused_where_plugins_are_frozen(
    below, load, locked, tmp_path
):
    case = plain(tmp_path)
    lock = locked(case)
    place = case.library.parent / below / case.library.name
    opened_library(place, "evil", soname=case.library.name)

    state, [[rule, message]], traces = load(case, lock)

    assert (state, rule, traces) == ("rejected", "LD-080", [])
    assert str(place) in message


def test_nothing_is_mapped_while_the_linker_cannot_be_asked_where_it_looks(
    run_python, locked, traces, tmp_path
):
    """What it would take from a directory for this processor would not be judged."""
    options = ["-Wl,--no-as-needed", "-lresolv", "-Wl,-rpath,$ORIGIN/libs"]
    case = Case(opening_plugin(tmp_path / "libx.so", options=options), tmp_path, {})
    lock = locked(case)
    place = tmp_path / "libs" / _LEVELS[-1] / "libresolv.so.2"
    opened_library(place, "evil", soname="libresolv.so.2")
    given = json.dumps([str(case.plugin), str(lock)])
    env = {"TRACES": str(traces), "XDG_CACHE_HOME": str(tmp_path / "cache")}

    now = run_python(_NO_PROCESSES + _LOAD, given, env=env, status=1)
    state, [[rule, _]] = json.loads(run_python(_LOAD, given, env=env).stdout)

    assert "(rule LD-113)" in now.stderr
    assert (state, rule) == ("rejected", "LD-080")
    assert list(traces.iterdir()) == []


def test_a_filter_that_appears_is_noticed(load, locked, tmp_path):
    """The linker goes on without an auxiliary filter, so its absence is no reason to refuse."""
    case = filtered("-f")(tmp_path)
    hidden = case.library.rename(tmp_path / "hidden")
    lock = locked(case)

    state, reasons, traces = load(case, lock)
    assert (state, reasons) == ("loaded", [])
    assert "opened" not in traces
    hidden.rename(case.library)
    state, [[rule, _]], traces = load(case, lock)
    assert (state, rule, traces) == ("rejected", "LD-080", [])


def test_a_filter_that_must_be_there_is_missed(load, tmp_path):
    case = filtered("-F")(tmp_path)
    case.library.unlink()

    state, [[rule, message]], traces = load(case)

    assert (state, rule, traces) == ("rejected", "LD-013", [])
    assert "libx.so needs libbrought.so, which is not found" in message


def test_a_program_that_changed_its_variables_does_not_change_where_its_linker_looks(
    run_python, locked, traces, tmp_path
):
    case = by_library_path(tmp_path)
    lock = locked(case)
    altered = opened_library(tmp_path / "altered.so", "evil", soname="libbrought.so")
    shutil.copy(altered, case.library)
    given = json.dumps([str(case.plugin), str(lock)])
    hides = """
    import os
    os.environ.pop("LD_LIBRARY_PATH")
    """

    done = run_python(hides + _LOAD, given, env={"TRACES": str(traces), **case.environment})
    state, [[rule, message]] = json.loads(done.stdout)

    assert (state, rule, list(traces.iterdir())) == ("rejected", "LD-080", [])
    assert str(case.library) in message


@pytest.mark.parametrize("library_path", [":", "/nowhere:", ":/nowhere", "."])
def test_an_empty_entry_of_the_library_path_is_the_current_directory(
    library_path, load, locked, tmp_path
):
    case = by_library_path(tmp_path)
    here = case.library.rename(tmp_path / case.library.name)
    case = case._replace(library=here, environment={"LD_LIBRARY_PATH": library_path})
    lock = locked(case)

    assert load(case, lock)[:2] == ("loaded", [])
    with here.open("ab") as stream:
        stream.write(b"other")
    assert load(case, lock)[1][0][0] == "LD-080"
    here.chmod(0o666)
    state, [[rule, _]], traces = load(case)
    assert (state, rule, traces) == ("rejected", "LD-076", [])
