"""What the linker's variables brought into a process is judged with each plugin."""

import shutil

import pytest

from modular_tf.discovery.linking.dynamic_linker import ask_linker
from modular_tf.native.preloading import preload
from tests.trust.opening import opened_library, opening_plugin

PRINT = """
    import os, sys
    {first}
    from modular_tf.discovery.linking.system_libraries import environment_libraries
    print(environment_libraries())
"""


@pytest.fixture
def plugin(tmp_path):
    return opening_plugin(tmp_path / "libx.so")


@pytest.fixture
def tool(tmp_path):
    """Return a library for variables."""
    return opened_library(tmp_path / "tools" / "libtool.so", "tool")


def by_path(tool):
    return {"LD_PRELOAD": str(tool)}


def by_name(tool):
    return {"LD_PRELOAD": tool.name, "LD_LIBRARY_PATH": str(tool.parent)}


def by_link(tool):
    link = tool.parent.parent / "liblink.so"
    link.symlink_to(tool)
    return {"LD_PRELOAD": f"/nowhere/libnothing.so {link}"}


def as_need(tool):
    """It has the place of a library that the program needs."""
    shutil.copy(str(dict(ask_linker(["libm.so.6"]).listed)["libm.so.6"]), tool)
    (tool.parent / "libm.so.6").symlink_to(tool)
    return {"LD_LIBRARY_PATH": str(tool.parent)}


def as_audit(tool):
    """The linker runs it, finds no `la_version` in it, and unmaps it."""
    return {"LD_AUDIT": str(tool)}


@pytest.mark.parametrize("way", [by_link, as_need, as_audit])
def test_it_must_be_locked_where_plugins_are_frozen(way, tool, plugin, load, lock_by_command):
    lock = lock_by_command(plugin)
    environment = way(tool)

    [refused] = load(plugin, lock=lock, **environment)
    assert refused.outcome == ("rejected", "LD-098")
    brought = f"{tool}, which LD_PRELOAD, LD_AUDIT or LD_LIBRARY_PATH brought into"
    assert brought in refused.message
    assert f"{lock} does not have {tool}" in refused.message

    lock_by_command(plugin, **environment)
    assert load(plugin, lock=lock, **environment)[0].outcome == ("loaded",)
    with tool.open("ab") as stream:
        stream.write(b"other")
    assert load(plugin, lock=lock, **environment)[0].outcome == ("rejected", "LD-098")


def test_what_strangers_can_change_is_refused(tool, plugin, load):
    tool.parent.chmod(0o777)

    loaded = {each.name: each for each in load(plugin, bundled=True, **by_path(tool))}

    assert loaded["posix_filesystem"].outcome == ("loaded",)
    assert loaded["x"].outcome == ("rejected", "LD-098")
    assert str(tool) in loaded["x"].message
    assert "so anybody may write to it" in loaded["x"].message


def test_a_program_that_changed_its_variables_does_not_hide_it(tool, plugin, load, lock_by_command):
    first = "\n    import os; os.environ.pop('LD_PRELOAD')"
    [refused] = load(plugin, lock=lock_by_command(plugin), first=first, **by_path(tool))

    assert refused.outcome == ("rejected", "LD-098")


SET_FOR_OTHERS = "os.environ.update(LD_PRELOAD=sys.argv[1], LD_AUDIT=sys.argv[1])"


@pytest.mark.parametrize(
    ("way", "change", "shown"),
    [
        (lambda tool: {}, SET_FOR_OTHERS, "()"),
        # The linker separates libraries of LD_PRELOAD by blanks and colons, these by colons alone.
        (as_audit, "", "('{tool}',)"),
        # What has the place of one that was replaced or removed since is not that one.
        (by_path, "os.replace(sys.argv[1] + '.good', sys.argv[1])", "('{tool} (deleted)',)"),
        (by_name, "os.unlink(sys.argv[1])", "('{tool} (deleted)',)"),
        (as_need, "os.unlink(sys.argv[1])", "('{tool} (deleted)',)"),
    ],
    ids=["set for others", "blank", "replaced", "removed", "removed need"],
)
def test_what_this_process_was_linked_with_counts(way, change, shown, tmp_path, run_python):
    name = "with blank" if way is as_audit else "tools"
    tool = opened_library(tmp_path / name / "libtool.so", "tool")
    opened_library(tool.with_name("libtool.so.good"), "good")

    child = run_python(PRINT.format(first=change), tool, env=way(tool))

    assert child.stdout == shown.format(tool=tool) + "\n"


def test_libraries_of_the_system_and_of_the_package_need_no_lock(plugin, load, lock_by_command):
    lock = lock_by_command(plugin)
    for environment in ({"LD_PRELOAD": "libanl.so.1"}, preload({})):
        assert environment["LD_PRELOAD"]
        assert load(plugin, lock=lock, **environment)[0].outcome == ("loaded",)


def test_what_cannot_be_found_out_is_not_taken_for_nothing(tool, plugin, run_python):
    """A shortage refuses nothing, and the next search asks again."""
    code = """
        import os, sys
        from modular_tf.discovery.linking import system_libraries as asked
        from modular_tf.errors import ResourceExhaustedError
        from modular_tf.service.service import PluginService

        def open_none(path, *arguments):
            raise OSError(24, os.strerror(24), path)

        def discover():
            with PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
                (record,) = service.discover().plugins
                print(record.state.value, [reason.rule for reason in record.reasons])

        maps, asked._MAPS = asked._MAPS, "/nowhere"
        discover()
        asked.open = open_none
        try:
            discover()
        except ResourceExhaustedError as error:
            print(error.rule)
        del asked.open
        asked._MAPS = maps
        discover()
        print(asked.environment_libraries())
    """
    printed = run_python(code, plugin, env=by_path(tool)).stdout.splitlines()

    assert printed == ["rejected ['LD-098']", "LD-113", "found []", f"('{tool}',)"]
