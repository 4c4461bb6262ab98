"""Libraries that a plugin's code opens by name and that need a library of TensorFlow."""

import ctypes
import os
from pathlib import Path

import pytest

from modular_tf.discovery.linking.host_exports import HOST_RUNTIME, REPLACED_SONAMES
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.filesystem_tables import init_filesystems
from modular_tf.native.library import Library
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library
from tests.loading.conftest import facts_of, load_probed, put
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


@pytest.fixture
def put_plugin(folder, opened):
    """Put a plugin into its folder that opens the library."""

    def put_one(*macros, search="$ORIGIN/../libs"):
        compiled = compile_object(SOURCE, [f'FIRST="{opened}"', *macros])
        path = f"-Wl,--enable-new-dtags,-rpath,{search}"
        return put(link_library("libopening.so", [compiled], [path]), folder / "plugins")

    return put_one


def put_opened(place, *macros, needed=INTERNAL):
    compiled = compile_object(SOURCE, [f"OPENED={ANSWER}", *macros])
    options = ["-Wl,--no-as-needed", str(framework_stub(needed))]
    return put(link_library(place.name, [compiled], options), place)


@pytest.fixture
def library(folder, opened):
    """Put the library into its folder."""
    return put_opened(folder / "libs" / opened)


def ask(library):
    return ctypes.CFUNCTYPE(ctypes.c_int)(library.symbol("ask"))()


@pytest.mark.parametrize("needed", sorted(REPLACED_SONAMES - {HOST_RUNTIME}))
def test_it_is_led_to_the_host(needed, folder, opened, put_plugin):
    put_opened(folder / "libs" / opened, needed=needed)

    mapped = load_probed(put_plugin())

    assert ask(mapped) == ANSWER
    assert Library.find(needed) is None, "what needs TensorFlow later would get the host"
    arrived = bound_files.arrived_since(bound_files.of(mapped).stub)
    assert arrived == [], "it came unexpected"


@pytest.mark.parametrize("search", ["$ORIGIN", "${ORIGIN}/../plugins", "$ORIGIN/../libs/below"])
def test_it_is_found_where_the_plugin_is_searched_from(search, folder, opened, put_plugin):
    place = Path(search.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", f"{folder}/plugins"))
    place.mkdir(exist_ok=True)
    put_opened(place / opened)

    assert ask(load_probed(put_plugin(search=search))) == ANSWER


def test_what_the_plugins_code_does_not_name_or_is_damaged_is_left_alone(
    folder, opened, put_plugin
):
    plugin = put_plugin()
    put_opened(folder / "libs" / f"other_{opened}")
    assert facts_of(plugin).companions == ()

    library = put_opened(folder / "libs" / opened)
    assert [os.path.realpath(path) for path in facts_of(plugin).companions] == [str(library)]
    library.write_bytes(library.read_bytes()[:5000])
    assert facts_of(plugin).companions == ()


def test_what_needs_the_inside_of_tensorflow_is_left_alone(folder, opened, put_plugin):
    put_opened(folder / "libs" / opened, "MISSING=_ZN10tensorflow6insideEv")
    plugin = put_plugin()

    assert facts_of(plugin)[2:] == ((), (), ())
    assert ask(load_probed(plugin)) == 0


def test_what_was_closed_leads_to_no_other_file(library, put_plugin):
    other = link_library("libmtf_other.so", [compile_object(LAST, ["ANSWER=13", 'NAME="other"'])])
    mapped = load_probed(put_plugin("IN_INIT=1"))
    bound_files.of(mapped).by_name.close_unopened()

    taken = [os.open(other, os.O_RDONLY) for _ in range(100)]  # the number of the copy among them
    init_filesystems(mapped, plugin="x")
    for descriptor in taken:
        os.close(descriptor)

    assert ask(mapped) == 0


def test_a_service_loads_it_without_a_remark_and_notices_changes(library, put_plugin):
    plugin = put_plugin()
    for change, rules in (
        (lambda: None, NOTHING_REGISTERED),
        (lambda: put_opened(library, "MISSING=TF_NobodyHasThis"), NOTHING_REGISTERED | {"LD-017"}),
        (lambda: put_opened(library).chmod(0o777), {"LD-076"}),  # it is trusted like the plugin
    ):
        change()
        with PluginService(plugin_paths=[plugin], bundled=False) as service:
            (record,) = service.load().plugins
        reasons = (*record.reasons, *record.warnings)
        assert {found.rule for found in reasons} == rules
        assert "LD-076" not in rules or library.name in reasons[0].message
