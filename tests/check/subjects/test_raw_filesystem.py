"""The raw subject: what a plugin's slots answer, with nothing in between."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import (
    FILESYSTEM_OPS,
    RANDOM_ACCESS_FILE_OPS,
    READ_ONLY_MEMORY_REGION_OPS,
    WRITABLE_FILE_OPS,
)
from modular_tf.abi.status_codes import Code
from modular_tf.check.calls import listen
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.filesystem.by_slots import SlotFilesystem, default_name
from modular_tf.check.filesystem.operations import OPERATIONS, TABLES
from modular_tf.filesystem.filesystem import Filesystem
from tests.check.subjects.conftest import FILE, ROOT

_UNTOUCHED = 2**64 - 1


def test_a_name_is_the_plugins(raw_filesystem):
    assert raw_filesystem().translate_name("fixture://host//a/../b").value == "//a/../b"


def test_two_filesystems_are_independent(raw_filesystem):
    first = raw_filesystem()
    second = first.another()

    assert second.init().ok
    assert second.handle not in {0, first.handle}
    assert second.path_exists(FILE).code == Code.NOT_FOUND
    second.cleanup()
    assert first.path_exists(FILE).ok


def test_what_stays_open_is_cleaned_up_once(raw_filesystem):
    filesystem = raw_filesystem()
    reader = filesystem.new_random_access_file(FILE).value
    filesystem.close_left_open()
    reader.close()

    calls = [call for call in filesystem.calls if call.startswith("cleanup(file")]
    assert calls == ["cleanup(file1)"]


def test_all_that_the_plugin_gave_is_given_back(run_python, fixture_plugin, plugin_report):
    run_python(
        """
        import sys
        from modular_tf.check.filesystem.by_slots import open_raw
        from modular_tf.loading.binding import map_file
        from modular_tf.loading.filesystem_tables import init_filesystems
        offer = init_filesystems(map_file(sys.argv[1], ()), plugin="fixture")
        filesystem = open_raw(offer.entries[0])
        filesystem.new_writable_file("fixture://h/file").value.cleanup()
        filesystem.get_children("fixture://h")
        filesystem.get_matching_paths("fixture://h/*")
        filesystem.get_filesystem_configuration()
        filesystem.translate_name("fixture://h/x")
        filesystem.cleanup()
        """,
        fixture_plugin("good"),
        env=plugin_report.environment,
    )
    counted = plugin_report.last()

    assert counted["allocated"] == counted["freed"] > 0
    assert counted["bad_frees"] == 0
    assert counted["files_opened"] == counted["files_cleaned_up"] == 1


def test_a_call_is_announced_before_it_is_made(raw_filesystem):
    filesystem = raw_filesystem()
    seen = []
    listen(lambda call: seen.append((call, list(filesystem.calls))))
    try:
        filesystem.calls.clear()
        filesystem.path_exists(FILE)
    finally:
        listen(lambda _: None)

    assert seen[-1] == (f"path_exists({FILE!r})", [])


def test_a_poisoned_status_is_an_error_where_nobody_sets_it(raw_filesystem):
    filesystem, silent = raw_filesystem(), raw_filesystem("status-untouched")
    with filesystem.poisoned(), silent.poisoned():
        assert filesystem.path_exists(FILE).code == 0
        assert filesystem.paths_exist([FILE]).value == [0]
        answer = silent.path_exists(FILE)

    assert (answer.code, answer.touched) == (Code.UNKNOWN, False)
    answer = silent.path_exists(FILE)
    assert (answer.code, answer.touched, answer.message) == (0, False, "")
    assert filesystem.path_exists(FILE).touched is True
    assert filesystem.paths_exist([FILE]).touched is True
    assert raw_filesystem("paths-exist-silent").paths_exist([FILE]).touched is False


def test_a_message_that_is_no_text_or_not_there_is_reported(raw_filesystem):
    answer = raw_filesystem("message-not-utf8").path_exists(FILE)
    assert (answer.code, answer.message_is_text) == (Code.NOT_FOUND, False)
    answer = raw_filesystem("message-null").path_exists(FILE)
    assert (answer.code, answer.message) == (Code.NOT_FOUND, "")


@pytest.mark.parametrize(
    ("variant", "code", "returned", "value"),
    [
        ("read-short", Code.OK, 2, b"he"),
        ("read-minus-one", Code.OK, -1, b""),
        ("read-too-many", Code.OK, 20, b"hell"),
        ("read-error-with-data", Code.DATA_LOSS, 4, b"hell"),
        ("read-fails", Code.UNAVAILABLE, 0, b""),
        ("children-minus-one", Code.OK, -1, None),
        ("children-array-null", Code.OK, 2, []),
        ("children-none-array-null", Code.OK, 0, []),
        ("children-entry-null", Code.OK, 2, ["first", None]),
        ("children-error-with-entries", Code.UNAVAILABLE, 1, []),
        ("children-name-with-slash", Code.OK, 2, ["good", "a/b"]),
        ("stat-untouched", Code.OK, None, None),
        ("delete-recursively-untouched", Code.OK, None, (_UNTOUCHED, _UNTOUCHED)),
        ("size-minus-one", Code.OK, -1, -1),
    ],
)
def test_an_answer_is_what_the_plugin_made_of_it(raw_filesystem, variant, code, returned, value):
    filesystem = raw_filesystem(variant)
    match variant.split("-")[0]:
        case "read":
            answer = filesystem.new_random_access_file(FILE).value.read(0, 4)
        case "children":
            answer = filesystem.get_children(ROOT)
        case "stat":
            answer = filesystem.stat(FILE)
        case "delete":
            answer = filesystem.delete_recursively(FILE)
        case "size":
            answer = filesystem.get_file_size(FILE)

    assert (answer.code, answer.returned, answer.value) == (code, returned, value)


def test_a_reader_without_a_handle_is_a_reader(raw_filesystem):
    reader = raw_filesystem("open-without-handle").new_random_access_file(FILE).value

    assert reader.handle == 0
    assert reader.read(0, 1).code == Code.OUT_OF_RANGE


def test_a_name_of_null_is_none_and_blocks_operations(fixture_tables):
    filesystem = SlotFilesystem(fixture_tables("translate-null"))
    filesystem.init()

    assert filesystem.translate_name(FILE).value is None
    with pytest.raises(Blocked, match="translate_name"):
        filesystem.path_exists(FILE)


@pytest.mark.parametrize(
    ("variant", "operation", "given"),
    [
        ("nothing-but-init", "path_exists", [FILE]),
        ("nothing-but-init", "translate_name", [FILE]),
        ("filesystem-size-176", "start_transaction", []),
        ("filesystem-size-176", "get_filesystem_configuration", []),
    ],
)
def test_a_slot_that_is_null_is_unsupported(raw_filesystem, variant, operation, given):
    with pytest.raises(Unsupported, match=operation):
        getattr(raw_filesystem(variant), operation)(*given)


def test_slots_are_named_by_their_table(raw_filesystem):
    filesystem = raw_filesystem("file-slots-null")

    assert filesystem.has("TF_RandomAccessFileOps.cleanup")
    assert not filesystem.has("TF_RandomAccessFileOps.read")
    assert not filesystem.has("append")
    assert not filesystem.offers("append")
    assert filesystem.has("stat")


@pytest.mark.parametrize(
    "uri",
    ["", "/", "//a//b/../c/", "a/..", "zz://", "zz://h", "zz://h/p/./q", "a://h/p", "zz://h/%2e?x"],
)
def test_without_translate_name_the_rule_stands_in(uri):
    assert default_name(uri) == Filesystem("zz", "host").translate_name(uri)


def test_each_slot_that_a_host_calls_has_a_row():
    uncalled = "get_filesystem_configuration_keys"

    assert [*OPERATIONS] == [s.name for s in FILESYSTEM_OPS.slots if s.name != uncalled]
    for table in (RANDOM_ACCESS_FILE_OPS, WRITABLE_FILE_OPS, READ_ONLY_MEMORY_REGION_OPS):
        assert TABLES[table.name].keys() == {slot.name for slot in table.slots}
