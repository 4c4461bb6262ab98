"""Exceptions and nonsense from a plugin become errors that name it, and the process lives.

Each test runs in a child: what it proves is that the child ends in order.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.errors import UnimplementedError
from modular_tf.service.service import PluginService
from tests.fixtures.compiler import compile_object, link_library

_BEGIN = """
import gc, sys
from modular_tf.errors import InternalError, ModularTFError
from modular_tf.filesystem.configuration import Option
from modular_tf.service.service import PluginService

service = PluginService(plugin_paths=sys.argv[1:2], bundled=False)
service.load()

def fails(use, *words):
    try:
        use()
    except InternalError as error:
        assert all(word in error.message for word in words), error.message
        assert error.plugin == "hostile" and error.operation, error.message
    else:
        raise AssertionError(f"no error, but it should tell of {words}")
"""

_USES = """
def uses(fs):
    u = fs.scheme + "://h/x"
    return {
        "new_appendable_file": lambda: fs.new_appendable_file(u),
        "create_dir": lambda: fs.create_dir(u),
        "recursively_create_dir": lambda: fs.recursively_create_dir(u),
        "delete_file": lambda: fs.delete_file(u),
        "delete_dir": lambda: fs.delete_dir(u),
        "delete_recursively": lambda: fs.delete_recursively(u),
        "rename_file": lambda: fs.rename_file(u, u + "2"),
        "copy_file": lambda: fs.copy_file(u, u + "2"),
        "path_exists": lambda: fs.path_exists(u),
        "paths_exist": lambda: fs.paths_exist([u, u]),
        "stat": lambda: fs.stat(u),
        "is_directory": lambda: fs.is_directory(u),
        "get_file_size": lambda: fs.get_file_size(u),
        "get_children": lambda: fs.get_children(u),
        "get_matching_paths": lambda: fs.get_matching_paths(u + "*"),
        "flush_caches": lambda: fs.flush_caches(),
        "start_transaction": lambda: fs.start_transaction(),
        "get_transaction_for_path": lambda: fs.get_transaction_for_path(u),
        "get_filesystem_configuration": lambda: fs.get_filesystem_configuration(),
        "set_filesystem_configuration": lambda: fs.set_filesystem_configuration([]),
        "get_filesystem_configuration_option": lambda: fs.get_filesystem_configuration_option("x"),
        "set_filesystem_configuration_option":
            lambda: fs.set_filesystem_configuration_option(Option("x", (1,))),
    }
"""


@pytest.fixture(scope="module")
def hostile_plugin():
    compiled = compile_object(Path(__file__).with_name("hostile_plugin.cc"))
    return link_library("libhostile.so", [compiled], cxx=True)


@pytest.fixture(scope="module")
def throwing_free():
    source = Path(__file__).with_name("hostile_plugin.cc")
    return link_library("libhostile.so", [compile_object(source, ["THROWING_FREE"])], cxx=True)


@pytest.fixture
def in_child(hostile_plugin, run_python):
    def run(code, isolation="none"):
        run_python(_BEGIN + _USES + code, hostile_plugin, env={"MODULAR_TF_ISOLATION": isolation})

    return run


def test_a_plugin_that_throws_from_init_loses_that_scheme_only(hostile_plugin):
    with PluginService(plugin_paths=[hostile_plugin], bundled=False) as service:
        (record,) = service.load().plugins
        assert set(record.schemes) == {"throws", "names", "ends", "odd", "odd.count", "lists"}
        assert (record.reason.rule, record.reason.stage) == ("FS-019", "init")
        assert "'starts'" in record.reason.message
        assert "a C++ exception left the plugin: thrown by the plugin" in record.reason.message


def test_an_exception_from_any_operation_is_an_internal_error(in_child):
    in_child(
        """
fs = service.filesystem("throws")
for name, use in uses(fs).items():
    what = "not a std::exception" if name == "create_dir" else "thrown by the plugin"
    fails(use, name, "a C++ exception left the plugin", what, "(plugin hostile)")
reader = fs.new_random_access_file("throws://h/x")
fails(lambda: reader.read(0, 5), "read", "thrown by the plugin")
fails(lambda: reader.readinto(0, bytearray(5)), "read", "thrown by the plugin")
reader.close()
fails(lambda: fs.read_file("throws://h/x"), "read", "thrown by the plugin", "throws://h/x")
for _ in range(2):
    writer = fs.new_writable_file("throws://h/x")
    for name, use in (("append", lambda: writer.append(b"x")), ("tell", writer.tell),
                      ("flush", writer.flush), ("sync", writer.sync), ("close", writer.close)):
        fails(use, name, "thrown by the plugin")
    writer.close()
fails(lambda: fs.new_read_only_memory_region_from_file("throws://h/x"), "thrown by the plugin")
abandoned = fs.new_writable_file("throws://h/x")
del abandoned
gc.collect()
assert fs.open_count == 0
"""
    )


def test_an_exception_from_translate_name_is_an_error_of_the_operation(in_child):
    in_child(
        """
fs = service.filesystem("names")
without_path = {"flush_caches", "start_transaction", "get_matching_paths"}
for name, use in uses(fs).items():
    if name not in without_path and "configuration" not in name:
        fails(use, name, "thrown by the plugin")
fails(lambda: fs.translate_name("names://h"), "translate_name", "thrown by the plugin")
fails(lambda: fs.new_random_access_file("names://h"), "new_random_access_file")
fails(lambda: fs.new_read_only_memory_region_from_file("names://h"))
assert fs.open_count == 0
"""
    )


def test_exceptions_from_cleanups_end_nothing_but_the_cleanup(in_child):
    in_child(
        """
fs = service.filesystem("ends")
reader = fs.new_random_access_file("ends://h/x")
fails(reader.close, "thrown by the plugin")
reader.close()
fails(lambda: fs.read_file("ends://h/x"), "cleanup", "thrown by the plugin")
assert fs.open_count == 0
with fs.new_writable_file("ends://h/x") as writer:
    writer.append(b"x")
view = fs.new_read_only_memory_region_from_file("ends://h/x").view()
assert view == b"bytes"
del view
reader = fs.new_random_access_file("ends://h/x")
del reader
kept = fs.new_random_access_file("ends://h/x")
gc.collect()
try:
    service.close()
except InternalError:
    pass
assert fs.open_count == 0
"""
    )


def test_exceptions_from_the_plugins_free_change_nothing(throwing_free, run_python):
    run_python(
        _BEGIN
        + """
fs = service.filesystem("lists")
for _ in range(3):
    assert fs.translate_name("lists://h/x") == "lists://h/x"
    assert fs.path_exists("lists://h/x")
    assert fs.get_children("lists://h") == ["entry"]
    assert fs.get_matching_paths("lists://h/*") == ["entry"]
    assert fs.get_filesystem_configuration_option("key").name == "key"
    transaction = fs.start_transaction()
    assert fs.decode_transaction_token(transaction) == "a transaction"
    with fs.new_random_access_file("lists://h/x") as reader:
        reader.read(0, 5)
odd = service.filesystem("odd")
for key in ("no-name", "negative"):
    fails(lambda: odd.get_filesystem_configuration_option(key), "malformed")
service.close()
""",
        throwing_free,
    )


def test_statistics_are_of_one_type_whatever_a_plugin_writes(in_child):
    in_child(
        """
from modular_tf.filesystem.files import FileStatistics

found = service.filesystem("odd").stat("odd://h/x")
assert type(found) is FileStatistics and repr(found) == repr(FileStatistics(3, -1, True)), found
"""
    )


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_options_and_transactions_that_make_no_sense_are_errors(isolation, in_child):
    in_child(
        """
fs = service.filesystem("odd")
for key in ("no-name", "no-value", "no-values", "bad-tag", "negative", "no-bytes"):
    fails(lambda: fs.get_filesystem_configuration_option(key), "option is malformed", "hostile")
assert fs.get_filesystem_configuration_option("whole").values == (b"",)
fails(lambda: fs.get_filesystem_configuration_option("nothing"), "no option with an OK status")
fails(fs.get_filesystem_configuration, "a count that does not fit its array")
fails(fs.get_filesystem_configuration_keys, "a count that does not fit its array")
fails(service.filesystem("odd.count").get_filesystem_configuration, "does not fit")
fails(fs.start_transaction, "no token with an OK status")
fails(lambda: fs.get_transaction_for_path("odd://h/x"), "-1 with an OK status")
fails(lambda: fs.new_read_only_memory_region_from_file("odd://h/x"), "has no data")
assert fs.open_count == 0
""",
        isolation,
    )


def test_a_region_of_no_bytes_is_an_empty_view(hostile_plugin):
    with PluginService(plugin_paths=[hostile_plugin], bundled=False) as service:
        service.load()
        fs = service.filesystem("odd.count")
        with fs.new_read_only_memory_region_from_file("odd.count://h/x") as region:
            assert len(region) == 0
            assert region.view() == b""
        with pytest.raises(UnimplementedError):
            fs.start_transaction()


# ---- Of the fixture plugin: what the host makes good ----


@pytest.fixture
def filesystem(request, fixture_plugin):
    with PluginService(plugin_paths=[fixture_plugin(request.param)], bundled=False) as service:
        service.load()
        yield service.filesystem("fixture")


@pytest.mark.parametrize("filesystem", ["paths-exist-silent", "paths-exist-lies"], indirect=True)
def test_answers_that_contradict_each_other_are_asked_again(filesystem):
    filesystem.create_dir("fixture://h/d")
    exists, absent = "fixture://h/d", "fixture://h/absent"

    assert filesystem.paths_exist([exists, absent]) == [True, False]
    assert filesystem.paths_exist([exists, exists]) == [True, True]
    assert filesystem.paths_exist([absent]) == [False]


@pytest.mark.parametrize("filesystem", ["children-name-twice"], indirect=True)
def test_a_name_is_listed_once(filesystem):
    assert filesystem.get_children("fixture://h") == ["good"]


@pytest.mark.parametrize("filesystem", ["read-short", "read-end-unsaid", "good"], indirect=True)
def test_a_read_is_as_long_as_was_asked_for_or_ends_the_file(filesystem):
    data = bytes(range(256)) * 40
    with filesystem.new_writable_file("fixture://h/f") as file:
        file.append(data)
    with filesystem.new_random_access_file("fixture://h/f") as file:
        assert file.read(0, len(data)) == data
        assert file.read(0, len(data) + 100) == data
        assert file.read(100, 1000) == data[100:1100]
        assert file.read(len(data), 5) == b""
        buffer = bytearray(len(data) + 7)
        assert file.readinto(1, buffer) == len(data) - 1
    with filesystem.open("fixture://h/f", "rb", buffering=0) as stream:
        assert stream.read() == data


@pytest.mark.parametrize("filesystem", ["file-slots-null"], indirect=True)
def test_files_without_slots_can_be_opened_and_cleaned_up(filesystem):
    writer = filesystem.new_writable_file("fixture://h/f")
    for name, use in (("append", lambda: writer.append(b"x")), ("tell", writer.tell)):
        with pytest.raises(UnimplementedError, match=name):
            use()
    writer.flush()
    writer.sync()
    with pytest.raises(UnimplementedError, match="close"):
        writer.close()
    with (
        filesystem.new_random_access_file("fixture://h/f") as reader,
        pytest.raises(UnimplementedError, match="read"),
    ):
        reader.read(0, 1)
    assert filesystem.open_count == 0


@pytest.mark.parametrize("filesystem", ["nothing-but-init"], indirect=True)
def test_a_filesystem_without_operations_says_so_of_each(filesystem):
    for use in (
        filesystem.new_random_access_file,
        filesystem.new_writable_file,
        filesystem.new_appendable_file,
        filesystem.new_read_only_memory_region_from_file,
        filesystem.create_dir,
        filesystem.recursively_create_dir,
        filesystem.delete_recursively,
        filesystem.path_exists,
        filesystem.stat,
        filesystem.is_directory,
        filesystem.get_file_size,
        filesystem.get_children,
        filesystem.get_transaction_for_path,
    ):
        with pytest.raises(UnimplementedError) as failure:
            use("fixture://h/x")
        assert failure.value.plugin == "fixture_filesystem_nothing_but_init"
    assert filesystem.translate_name("fixture://h/a/../b") == "/b"
    filesystem.flush_caches()
