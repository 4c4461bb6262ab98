"""Libraries that a plugin's code opens by name and that need a library of TensorFlow."""

from __future__ import annotations

import ctypes
import os
import shutil
from pathlib import Path

import pytest

from modular_tf.discovery.candidate import Candidate, LoadFacts, Source
from modular_tf.discovery.linking.host_exports import (
    HOST_RUNTIME,
    REPLACED_SONAMES,
    host_exports,
)
from modular_tf.discovery.probe import probe
from modular_tf.loading.binding import map_file
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.filesystem_tables import init_filesystems
from modular_tf.native.library import Library
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.build import framework_stub

SOURCE = Path(__file__).with_name("opening_plugin.c")
LAST = SOURCE.with_name("needed_library.c")
INTERNAL = "_pywrap_tensorflow_internal.so"
ANSWER = 42
NOTHING_REGISTERED = {"FS-001", "FS-002", "FS-005"}


@pytest.fixture
def folder(tmp_path):
    """Return a folder with one for plugins and one for libraries."""
    for name in ("plugins", "libs"):
        (tmp_path / name).mkdir()
    return tmp_path


@pytest.fixture
def opened(folder):
    """Return the name of the library; the dynamic linker would take another of that name for it."""
    return f"lib{folder.name}_opened.so"


def put(library, place):
    """Put a library into a place, with bytes of its own."""
    place = Path(shutil.copy(library, place))
    with place.open("ab") as stream:  # where no linker looks
        stream.write(os.urandom(16))
    return place


def put_plugin(folder, opened, *macros, search="$ORIGIN/../libs"):
    compiled = compile_object(SOURCE, [f'FIRST="{opened}"', *macros])
    path = f"-Wl,--enable-new-dtags,-rpath,{search}"
    return put(link_library("libopening.so", [compiled], [path]), folder / "plugins")


def put_opened(place, *macros, needed=INTERNAL, answer=ANSWER):
    compiled = compile_object(SOURCE, [f"OPENED={answer}", *macros])
    options = ["-Wl,--no-as-needed", str(framework_stub(needed))]
    return put(link_library(place.name, [compiled], options), place)


def facts_of(plugin):
    path = str(plugin)
    found = probe(Candidate(path, path, Source.ARGUMENT, "test", None, None, "x"), host_exports())
    assert found.loadable, found.problems
    return LoadFacts.of(found)


def load(plugin):
    facts = facts_of(plugin)
    return map_file(str(plugin), facts.companions, facts.absent)


def ask(library, name="ask"):
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol(name))()


@pytest.mark.parametrize("needed", sorted(REPLACED_SONAMES - {HOST_RUNTIME}))
def test_it_is_led_to_the_host(needed, folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / opened, needed=needed)

    assert ask(load(plugin)) == ANSWER
    assert Library.find(needed) is None, "what needs TensorFlow later would get the host"


@pytest.mark.parametrize("search", ["$ORIGIN", "${ORIGIN}/../plugins", "$ORIGIN/../libs/below"])
def test_it_is_found_where_the_plugin_is_searched_from(search, folder, opened):
    place = Path(search.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", f"{folder}/plugins"))
    place.mkdir(exist_ok=True)
    plugin = put_plugin(folder, opened, search=search)
    put_opened(place / opened)

    assert ask(load(plugin)) == ANSWER


def test_it_finds_what_lies_above_the_folders_that_the_plugin_searches(folder, opened):
    (folder / "libs" / "below").mkdir()
    plugin = put_plugin(folder, opened, search="$ORIGIN/../libs/below")
    compiled = compile_object(SOURCE, ['FIRST="liblast.so"', "ASK=answer"])
    needs = ["-Wl,--no-as-needed", str(framework_stub(INTERNAL))]
    search = "-Wl,--enable-new-dtags,-rpath,$ORIGIN/../.."
    put(link_library(opened, [compiled], [*needs, search]), folder / "libs" / "below")
    put(link_library("liblast.so", [compile_object(LAST, ["ANSWER=7", 'NAME="last"'])]), folder)

    assert ask(load(plugin)) == 7


def test_what_it_needs_and_nobody_has_is_replaced(folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / opened, "MISSING=TF_NobodyHasThis")

    assert facts_of(plugin).absent == ("TF_NobodyHasThis",)
    assert ask(load(plugin)) == ANSWER


def test_what_the_plugin_s_code_does_not_name_is_left_alone(folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / f"other_{opened}")

    assert facts_of(plugin).companions == ()


def test_what_needs_the_inside_of_tensorflow_is_left_alone(folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / opened, "MISSING=_ZN10tensorflow6insideEv")

    assert facts_of(plugin)[2:] == ((), (), ())
    assert ask(load(plugin)) == 0


def test_a_damaged_one_is_left_alone(folder, opened):
    plugin = put_plugin(folder, opened)
    library = put_opened(folder / "libs" / opened)
    library.write_bytes(library.read_bytes()[:5000])

    assert facts_of(plugin).companions == ()


def test_it_may_be_opened_by_an_init_function(folder, opened):
    plugin = put_plugin(folder, opened, "IN_INIT=1")
    put_opened(folder / "libs" / opened)
    library = load(plugin)
    assert ask(library) == 0

    init_filesystems(library, plugin="x")

    assert ask(library) == ANSWER


def test_those_that_nobody_opened_are_closed(folder, opened):
    other = opened.replace("opened", "other")
    plugin = put_plugin(folder, opened, f'SECOND="{other}"')
    for name in (opened, other):
        put_opened(folder / "libs" / name)

    before = copies_open()
    library = load(plugin)
    assert sorted(copies_open() - before) == sorted((opened, other))
    bound_files.of(library).by_name.close_unopened()
    bound_files.of(library).by_name.close_unopened()

    assert copies_open() - before == {opened}
    assert ask(library) == ANSWER


def test_what_was_closed_leads_to_no_other_file(folder, opened):
    plugin = put_plugin(folder, opened, "IN_INIT=1")
    put_opened(folder / "libs" / opened)
    other = link_library("libmtf_other.so", [compile_object(LAST, ["ANSWER=13", 'NAME="other"'])])
    library = load(plugin)
    bound_files.of(library).by_name.close_unopened()

    taken = [os.open(other, os.O_RDONLY) for _ in range(100)]  # the number of the copy among them
    init_filesystems(library, plugin="x")
    for descriptor in taken:
        os.close(descriptor)

    assert ask(library) == 0


def copies_open():
    """Return the names of the copies in memory that this process has open."""
    targets = [os.path.realpath(path) for path in Path("/proc/self/fd").iterdir()]
    return {Path(target.split(" ")[0]).name.removeprefix("memfd:") for target in targets}


def test_it_is_none_of_the_libraries_that_came_unexpected(folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / opened)

    library = load(plugin)

    assert bound_files.arrived_since(bound_files.of(library).stub) == []


def test_a_service_loads_it_without_a_remark(folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / opened)

    with PluginService(plugin_paths=[plugin], bundled=False) as service:
        (record,) = service.load().plugins

    assert rules_of(record) == NOTHING_REGISTERED


def test_it_is_trusted_like_the_plugin(folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / opened).chmod(0o777)

    with PluginService(plugin_paths=[plugin], bundled=False) as service:
        (record,) = service.load().plugins

    assert [reason.rule for reason in record.reasons] == ["LD-076"]
    assert opened in record.reasons[0].message


def test_a_change_of_it_is_noticed(folder, opened):
    plugin = put_plugin(folder, opened)
    put_opened(folder / "libs" / opened)
    for macros, told in ((), set()), (["MISSING=TF_NobodyHasThis"], {"LD-017"}):
        (folder / "libs" / opened).unlink()
        put_opened(folder / "libs" / opened, *macros)
        with PluginService(plugin_paths=[plugin], bundled=False) as service:
            (record,) = service.load().plugins
        assert rules_of(record) == NOTHING_REGISTERED | told


def rules_of(record):
    return {found.rule for found in (*record.reasons, *record.warnings)}
