"""What the linker's variables brought into a process is judged with each plugin."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.linking.dynamic_linker import ask_linker
from tests.trust.opening import opened_library, opening_plugin

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_LOAD = """
    import json, os, sys
    from modular_tf.service.configuration import Config
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.service.service import PluginService

    plugin, lock, changes, bundled = json.loads(sys.argv[1])
    for name in changes:  # as programs do, so that those which they start are without
        os.environ.pop(name, None)
    policy = TrustPolicy(frozen=lock is not None, lock=lock)
    config = Config(first_contact="never", load="eager", trust=policy)
    with PluginService(config=config, plugin_paths=[plugin], bundled=bundled) as service:
        records = service.load().plugins
    print(json.dumps([
        [p.name, p.state.value, [[r.rule, r.message] for r in (*p.reasons, *p.warnings)]]
        for p in records
    ]))
"""


@pytest.fixture
def plugin(tmp_path: Path) -> Path:
    return opening_plugin(tmp_path / "libx.so")


@pytest.fixture
def tool(tmp_path: Path) -> Path:
    """Return a library for variables."""
    return opened_library(tmp_path / "tools" / "libtool.so", "tool")


@pytest.fixture
def load(run_python, plugin) -> Callable:
    """Load the plugin in a new process; return what became of it."""

    def run(environment, lock=None, changes=(), *, bundled=False):
        given = json.dumps([str(plugin), None if lock is None else str(lock), changes, bundled])
        done = run_python(_LOAD, given, env=environment)
        return json.loads(done.stdout)

    return run


@pytest.fixture
def locked(run_python, plugin, tmp_path) -> Callable:
    """Write the lock file by the command."""

    def write(environment):
        path = tmp_path / "plugins.lock"
        arguments = ["--plugin", str(plugin), "--no-bundled", "lock", "--output", str(path)]
        code = f"from modular_tf.cli.main import run; raise SystemExit(run({arguments!r}))"
        run_python(code, env=environment)
        return path

    return write


def by_path(tool: Path) -> dict[str, str]:
    return {"LD_PRELOAD": str(tool)}


def by_name(tool: Path) -> dict[str, str]:
    return {"LD_PRELOAD": tool.name, "LD_LIBRARY_PATH": str(tool.parent)}


def by_link(tool: Path) -> dict[str, str]:
    link = tool.parent.parent / "liblink.so"
    if not link.is_symlink():
        link.symlink_to(tool)
    return {"LD_PRELOAD": f"/nowhere/libnothing.so {link}"}


def as_need(tool: Path) -> dict[str, str]:
    """It has the place of a library that the program needs."""
    place = tool.parent / "libm.so.6"
    if not place.is_symlink():
        shutil.copy(str(dict(ask_linker(["libm.so.6"]).listed)["libm.so.6"]), tool)
        place.symlink_to(tool)
    return {"LD_LIBRARY_PATH": str(tool.parent)}


def as_audit(tool: Path) -> dict[str, str]:
    """The linker runs it, finds no `la_version` in it, and unmaps it."""
    return {"LD_AUDIT": str(tool)}


_MAPPED_WAYS = [by_path, by_name, by_link, as_need]
WAYS = pytest.mark.parametrize("way", [*_MAPPED_WAYS, as_audit])
MAPPED_WAYS = pytest.mark.parametrize("way", _MAPPED_WAYS)


@WAYS
def test_what_is_not_locked_is_refused_where_plugins_are_frozen(way, tool, load, locked):
    lock = locked({})
    assert load({}, lock)[0][1] == "loaded"

    [[_, state, [[rule, message]]]] = load(way(tool), lock)

    assert (state, rule) == ("rejected", "LD-098")
    assert f"{tool}, which LD_PRELOAD, LD_AUDIT or LD_LIBRARY_PATH brought into" in message
    assert f"{lock} does not have {tool}" in message


@WAYS
def test_what_is_locked_is_accepted_until_it_is_altered(way, tool, load, locked):
    lock = locked(way(tool))

    assert [loaded[1:] for loaded in load(way(tool), lock)] == [["loaded", []]]
    with tool.open("ab") as stream:
        stream.write(b"other")
    [[_, state, [[rule, _]]]] = load(way(tool), lock)
    assert (state, rule) == ("rejected", "LD-098")


def test_a_blank_separates_no_libraries_of_ld_audit(tmp_path, run_python):
    """The linker separates those of LD_PRELOAD by blanks and colons, and these by colons alone."""
    tool = opened_library(tmp_path / "with blank" / "libtool.so", "tool")
    code = """
        from modular_tf.discovery.linking.system_libraries import environment_libraries
        print(environment_libraries())
    """

    assert run_python(code, env=as_audit(tool)).stdout == f"('{tool}',)\n"


def test_what_strangers_can_change_is_refused(tool, load):
    tool.parent.chmod(0o777)

    outcomes = load(by_path(tool), bundled=True)

    state = {name: (state, reasons) for name, state, reasons in outcomes}
    assert state["posix_filesystem"] == ("loaded", [])
    [[rule, message]] = state["x"][1]
    assert (state["x"][0], rule) == ("rejected", "LD-098")
    assert str(tool) in message
    assert "so anybody may write to it" in message


def test_a_program_that_changed_its_variables_does_not_hide_it(tool, load, locked):
    [[_, state, [[rule, _]]]] = load(by_path(tool), locked({}), ["LD_PRELOAD"])

    assert (state, rule) == ("rejected", "LD-098")


def test_variables_that_a_program_sets_for_others_do_not_matter(tool, run_python):
    code = """
        import os, sys
        os.environ.update(LD_PRELOAD=sys.argv[1], LD_LIBRARY_PATH=os.path.dirname(sys.argv[1]))
        os.environ.update(LD_AUDIT=sys.argv[1])
        from modular_tf.discovery.linking.system_libraries import environment_libraries
        print(environment_libraries())
    """
    assert run_python(code, tool).stdout == "()\n"


def test_one_that_was_replaced_since_is_not_what_has_its_place(tool, run_python):
    code = """
        import os, sys
        os.replace(sys.argv[1] + ".good", sys.argv[1])
        from modular_tf.discovery.linking.system_libraries import environment_libraries
        print(environment_libraries())
    """
    opened_library(tool.with_name("libtool.so.good"), "good")

    assert run_python(code, tool, env=by_path(tool)).stdout == f"('{tool} (deleted)',)\n"


@MAPPED_WAYS
def test_one_that_was_removed_since_is_refused(way, tool, run_python):
    code = """
        import os, sys
        os.unlink(sys.argv[1])
        from modular_tf.discovery.linking.system_libraries import environment_libraries
        print(environment_libraries())
    """
    environment = way(tool)

    assert run_python(code, tool, env=environment).stdout == f"('{tool} (deleted)',)\n"


def test_a_shortage_hides_nothing_and_refuses_nothing(tool, plugin, run_python):
    """The program has taken its variables away, and the system's list of them comes later."""
    code = """
        import os, sys
        from modular_tf.service.configuration import Config
        from modular_tf.discovery.linking import system_libraries as asked
        from modular_tf.errors import ResourceExhaustedError
        from modular_tf.service.service import PluginService

        def open_none(path, *arguments):
            if shortage and path.startswith("/proc/self/"):
                raise OSError(24, os.strerror(24), path)
            return open(path, *arguments)

        os.environ.pop("LD_PRELOAD")
        asked.open, shortage = open_none, True
        config = Config(first_contact="never", load="eager")
        with PluginService(config=config, plugin_paths=[sys.argv[1]], bundled=False) as service:
            for again in (service.load, service.refresh):
                try:
                    again()
                except ResourceExhaustedError as error:
                    print(error.rule, service.plugins())
            shortage = False
            service.refresh()
            (record,) = service.plugins()
            print(record.state, *(reason.rule for reason in record.reasons))
        print(asked.environment_libraries())
    """

    said = run_python(code, plugin, env=by_path(tool)).stdout.splitlines()

    assert said == ["LD-113 []", "LD-113 []", "loaded", f"('{tool}',)"]


def test_libraries_of_the_system_and_of_the_package_need_no_lock(load, locked, run_python):
    from modular_tf.native.preloading import preload

    lock = locked({})
    for environment in ({"LD_PRELOAD": "libanl.so.1"}, preload({})):
        assert environment["LD_PRELOAD"]
        assert [loaded[1:] for loaded in load(environment, lock)] == [["loaded", []]]


def test_what_an_auditor_brings_is_refused_too(tmp_path, load, locked):
    from tests.fixtures.compiler import compile_object, link_library

    source = tmp_path / "audit.c"
    exported = '__attribute__((visibility("default")))'
    source.write_text(f"{exported} unsigned la_version(unsigned version) {{ return version; }}\n")
    built = link_library("libaudit.so", [compile_object(source, [])], [])
    lock = locked({})

    [[_, state, [[rule, message]]]] = load({"LD_AUDIT": str(built)}, lock)

    assert (state, rule) == ("rejected", "LD-098")
    assert os.path.realpath(built) in message


def test_what_cannot_be_found_out_is_not_taken_for_nothing(tool, plugin, run_python):
    code = """
        import sys
        from modular_tf.discovery.linking import system_libraries as environment_libraries
        from modular_tf.service.service import PluginService

        maps, environment_libraries._MAPS = environment_libraries._MAPS, "/nowhere"
        for _ in range(2):
            with PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
                (record,) = service.discover().plugins
                print(record.state.value, [reason.rule for reason in record.reasons])
            environment_libraries._MAPS = maps
    """
    done = run_python(code, plugin, env=by_path(tool))

    assert done.stdout == "rejected ['LD-098']\nfound []\n"
