"""Exceptions and nonsense from a plugin become errors that name it, and the process lives."""

from __future__ import annotations

import gc
from contextlib import suppress

import pytest

from modular_tf.errors import InternalError, UnimplementedError
from modular_tf.filesystem.configuration import Option
from modular_tf.filesystem.files import FileStatistics
from tests.filesystem.plugins import built, service_of
from tests.fixtures.forked_children import in_a_fork

ON_PATHS = (
    *("new_appendable_file", "create_dir", "recursively_create_dir", "delete_file", "delete_dir"),
    *("delete_recursively", "path_exists", "stat", "is_directory", "get_file_size"),
    *("get_children", "get_transaction_for_path"),
)
WITHOUT_PATH = {
    "flush_caches": (),
    "start_transaction": (),
    "get_filesystem_configuration": (),
    "set_filesystem_configuration": ([],),
    "get_filesystem_configuration_option": ("x",),
    "set_filesystem_configuration_option": (Option("x", (1,)),),
}


def on_paths(fs):
    """Return the arguments of operations on paths, by name."""
    uri = f"{fs.scheme}://h/x"
    return {
        **dict.fromkeys(ON_PATHS, (uri,)),
        "rename_file": (uri, f"{uri}2"),
        "copy_file": (uri, f"{uri}2"),
        "paths_exist": ([uri, uri],),
    }


def assert_fails(use, *words, arguments=()):
    """Check that a use is an error of the plugin that says some words."""
    with pytest.raises(InternalError) as caught:
        use(*arguments)
    assert [word for word in words if word not in caught.value.message] == []
    assert caught.value.plugin == "hostile"
    assert caught.value.operation


@pytest.fixture(scope="module")
def hostile():
    with service_of(built("hostile")) as service:
        yield service


def test_a_plugin_that_throws_from_init_loses_that_scheme_only(hostile):
    (record,) = hostile.plugins()
    assert set(record.schemes) == {"throws", "names", "ends", "odd", "odd.count", "lists", "fails"}
    assert (record.reason.rule, record.reason.stage) == ("FS-019", "init")
    assert "'starts'" in record.reason.message
    assert "a C++ exception left the plugin: thrown by the plugin" in record.reason.message


def test_an_exception_from_any_operation_is_an_internal_error(hostile):
    fs = hostile.filesystem("throws")
    patterns = {"get_matching_paths": ("throws://h/x*",)}
    for name, given in {**on_paths(fs), **WITHOUT_PATH, **patterns}.items():
        what = "not a std::exception" if name == "create_dir" else "thrown by the plugin"
        words = name, "a C++ exception left the plugin", what, "(plugin hostile)"
        assert_fails(getattr(fs, name), *words, arguments=given)
    reader = fs.new_random_access_file("throws://h/x")
    assert_fails(lambda: reader.read(0, 5), "read", "thrown by the plugin")
    assert_fails(lambda: reader.readinto(0, bytearray(5)), "read", "thrown by the plugin")
    reader.close()
    assert_fails(lambda: fs.read_file("throws://h/x"), "read", "thrown by", "throws://h/x")
    for _ in range(2):
        writer = fs.new_writable_file("throws://h/x")
        assert_fails(lambda: writer.append(b"x"), "append", "thrown by the plugin")  # noqa: B023
        for name in ("tell", "flush", "sync", "close"):
            assert_fails(getattr(writer, name), name, "thrown by the plugin")
        writer.close()
    assert_fails(lambda: fs.new_read_only_memory_region_from_file("throws://h/x"), "thrown by")
    fs.new_writable_file("throws://h/x")  # left to the collector
    gc.collect()
    assert fs.open_count == 0


def test_an_exception_from_translate_name_is_an_error_of_the_operation(hostile):
    fs = hostile.filesystem("names")
    for name, given in on_paths(fs).items():
        assert_fails(getattr(fs, name), name, "thrown by the plugin", arguments=given)
    for name in (
        "translate_name",
        "new_random_access_file",
        "new_read_only_memory_region_from_file",
    ):
        assert_fails(getattr(fs, name), name, "thrown by the plugin", arguments=("names://h",))
    gc.collect()  # of what the caught errors hold
    assert fs.open_count == 0


@in_a_fork
def test_exceptions_from_cleanups_end_nothing_but_the_cleanup():
    service = service_of(built("hostile"))
    fs = service.filesystem("ends")
    reader = fs.new_random_access_file("ends://h/x")
    assert_fails(reader.close, "thrown by the plugin")
    reader.close()
    assert_fails(lambda: fs.read_file("ends://h/x"), "cleanup", "thrown by the plugin")
    assert fs.open_count == 0
    with fs.new_writable_file("ends://h/x") as writer:
        writer.append(b"x")
    view = fs.new_read_only_memory_region_from_file("ends://h/x").view()
    assert view == b"bytes"
    del view
    reader = fs.new_random_access_file("ends://h/x")
    del reader
    left_open = [fs.new_random_access_file("ends://h/x")]
    gc.collect()
    with suppress(InternalError):
        service.close()
    assert fs.open_count == 0
    left_open.clear()


def test_exceptions_from_the_plugins_free_change_nothing():
    with service_of(built("hostile", "THROWING_FREE")) as service:
        fs, odd = service.filesystem("lists"), service.filesystem("odd")
        for _ in range(3):
            assert fs.translate_name("lists://h/x") == "lists://h/x"
            assert fs.path_exists("lists://h/x")
            assert fs.get_children("lists://h") == ["entry"]
            assert fs.get_matching_paths("lists://h/*") == ["entry"]
            assert fs.get_filesystem_configuration_option("key").name == "key"
            assert fs.decode_transaction_token(fs.start_transaction()) == "a transaction"
            with fs.new_random_access_file("lists://h/x") as reader:
                reader.read(0, 5)
        for key in ("no-name", "negative"):
            option = odd.get_filesystem_configuration_option
            assert_fails(option, "malformed", arguments=(key,))


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_options_and_transactions_that_make_no_sense_are_errors(isolation):
    with service_of(built("hostile"), isolation=isolation) as service:
        fs = service.filesystem("odd")
        option = fs.get_filesystem_configuration_option
        for key in ("no-name", "no-value", "no-values", "bad-tag", "negative", "no-bytes"):
            assert_fails(option, "option is malformed", "hostile", arguments=(key,))
        assert option("whole").values == (b"",)
        assert_fails(option, "no option with an OK status", arguments=("nothing",))
        for use in (
            fs.get_filesystem_configuration,
            fs.get_filesystem_configuration_keys,
            service.filesystem("odd.count").get_filesystem_configuration,
        ):
            assert_fails(use, "a count that does not fit its array")
        assert_fails(fs.start_transaction, "no token with an OK status")
        assert_fails(lambda: fs.get_transaction_for_path("odd://h/x"), "-1 with an OK status")
        assert_fails(lambda: fs.new_read_only_memory_region_from_file("odd://h/x"), "has no data")
        assert fs.open_count == 0


def test_statistics_and_regions_are_sound_whatever_a_plugin_writes(hostile):
    found = hostile.filesystem("odd").stat("odd://h/x")
    assert type(found) is FileStatistics
    assert repr(found) == repr(FileStatistics(3, -1, is_directory=True))
    fs = hostile.filesystem("odd.count")
    with fs.new_read_only_memory_region_from_file("odd.count://h/x") as region:
        assert len(region) == 0
        assert region.view() == b""
    with pytest.raises(UnimplementedError):
        fs.start_transaction()


# ---- Of the fixture plugin: what the host makes good ----


@pytest.fixture
def filesystem(request, fixture_plugin):
    with service_of(fixture_plugin(request.param)) as service:
        yield service.filesystem("fixture")


def of_variants(*names):
    return pytest.mark.parametrize("filesystem", names, indirect=True)


@of_variants("paths-exist-silent", "paths-exist-lies")
def test_answers_that_contradict_each_other_are_asked_again(filesystem):
    filesystem.create_dir("fixture://h/d")
    exists, absent = "fixture://h/d", "fixture://h/absent"

    assert filesystem.paths_exist([exists, absent]) == [True, False]
    assert filesystem.paths_exist([exists, exists]) == [True, True]
    assert filesystem.paths_exist([absent]) == [False]


@of_variants("children-name-twice")
def test_a_name_is_listed_once(filesystem):
    assert filesystem.get_children("fixture://h") == ["good"]


@of_variants("read-short", "read-end-unsaid", "good")
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


@of_variants("file-slots-null")
def test_files_without_slots_can_be_opened_and_cleaned_up(filesystem):
    writer = filesystem.new_writable_file("fixture://h/f")
    reader = filesystem.new_random_access_file("fixture://h/f")
    for name, use in (
        ("append", lambda: writer.append(b"x")),
        ("tell", writer.tell),
        ("close", writer.close),
        ("read", lambda: reader.read(0, 1)),
    ):
        if name == "close":
            writer.flush()
            writer.sync()
        with pytest.raises(UnimplementedError, match=name):
            use()
    reader.close()
    assert filesystem.open_count == 0


@of_variants("nothing-but-init")
def test_a_filesystem_without_operations_says_so_of_each(filesystem):
    openers = ("new_random_access_file", "new_writable_file")
    others = set(ON_PATHS) - {"delete_file", "delete_dir"}
    for name in (*openers, "new_read_only_memory_region_from_file", *sorted(others)):
        with pytest.raises(UnimplementedError) as failure:
            getattr(filesystem, name)("fixture://h/x")
        assert failure.value.plugin == "fixture_filesystem_nothing_but_init"
    assert filesystem.translate_name("fixture://h/a/../b") == "/b"
    filesystem.flush_caches()
