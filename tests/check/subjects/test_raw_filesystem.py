"""The raw subject: what a plugin's slots answer, with nothing in between."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.calls import listen
from modular_tf.check.expectation import Blocked, Unsupported
from modular_tf.check.filesystem.by_slots import SlotFilesystem, default_name
from modular_tf.filesystem.filesystem import Filesystem
from tests.check.subjects.conftest import FILE, ROOT

_UNTOUCHED = 2**64 - 1


def _read(filesystem, n):
    reader = filesystem.new_random_access_file(FILE).value
    answer = reader.read(0, n)
    reader.close()
    return answer


# ---- A good plugin ----


def test_a_file_is_written_and_read(raw_filesystem):
    filesystem = raw_filesystem()
    writer = filesystem.new_appendable_file(FILE).value

    assert writer.append(b"\0!").ok
    assert (writer.tell().value, writer.tell().returned) == (7, 7)
    assert writer.flush().ok
    assert writer.sync().ok
    assert writer.close().ok
    writer.cleanup()
    answer = _read(filesystem, 100)
    assert (answer.code, answer.returned, answer.value) == (Code.OUT_OF_RANGE, 7, b"hello\0!")


def test_a_part_of_a_file_is_read(raw_filesystem):
    reader = raw_filesystem().new_random_access_file(FILE).value
    answer = reader.read(1, 3)

    assert (answer.code, answer.returned, answer.value) == (Code.OK, 3, b"ell")


def test_a_region_is_memory(raw_filesystem):
    region = raw_filesystem().new_read_only_memory_region_from_file(FILE).value

    assert region.length() == 5
    assert region.address() == region.address() != 0
    assert region.content() == b"hello"


def test_questions_are_answered(raw_filesystem):
    filesystem = raw_filesystem()
    statistics = filesystem.stat(FILE).value

    assert (statistics.length, statistics.is_directory, statistics.directory_byte) == (5, False, 0)
    assert filesystem.get_file_size(FILE).returned == 5
    assert filesystem.get_children(ROOT).value == ["file"]
    assert filesystem.get_children(ROOT).returned == 1
    assert filesystem.path_exists(f"{ROOT}/missing").code == Code.NOT_FOUND


def test_many_paths_have_a_code_each(raw_filesystem):
    filesystem = raw_filesystem()
    answer = filesystem.paths_exist([FILE, f"{ROOT}/missing"])

    assert (answer.value, answer.returned, answer.touched) == ([0, 5], False, True)
    assert filesystem.paths_exist([FILE], with_statuses=False).returned is True
    assert filesystem.paths_exist([]).returned is True


def test_counters_are_written_over_what_nobody_counts(raw_filesystem):
    filesystem = raw_filesystem()
    filesystem.create_dir(f"{ROOT}/gone")

    assert filesystem.delete_recursively(f"{ROOT}/gone").value == (0, 0)


def test_files_are_moved_and_copied(raw_filesystem):
    filesystem = raw_filesystem()

    assert filesystem.copy_file(FILE, f"{ROOT}/copy").ok
    assert filesystem.rename_file(f"{ROOT}/copy", f"{ROOT}/moved").ok
    assert sorted(filesystem.get_children(ROOT).value) == ["file", "moved"]
    assert filesystem.delete_file(f"{ROOT}/moved").ok


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

    assert [call for call in filesystem.calls if call.startswith("cleanup(file")] == [
        "cleanup(file1)"
    ]


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


# ---- What is called is told ----


def test_calls_are_kept_with_what_came_of_them(raw_filesystem):
    filesystem = raw_filesystem()
    filesystem.calls.clear()
    _read(filesystem, 10)

    assert filesystem.calls[0] == f"new_random_access_file({FILE!r}, &file1) -> OK"
    assert filesystem.calls[1].startswith("read(file1, offset=0, n=10) -> 5, OUT_OF_RANGE")
    assert filesystem.calls[2] == "cleanup(file1)"


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


def test_long_arguments_are_shortened(raw_filesystem):
    filesystem = raw_filesystem()
    filesystem.path_exists(f"{ROOT}/{'x' * 5000}")

    assert len(filesystem.calls[-1]) < 400


# ---- Statuses ----


def test_a_status_that_nobody_sets_is_seen(raw_filesystem):
    answer = raw_filesystem("status-untouched").path_exists(FILE)

    assert (answer.code, answer.touched, answer.message) == (0, False, "")


def test_a_status_that_is_set_to_ok_is_touched(raw_filesystem):
    assert raw_filesystem().path_exists(FILE).touched is True


def test_a_poisoned_status_stays_an_error_where_nobody_sets_it(raw_filesystem):
    filesystem = raw_filesystem("status-untouched")
    with filesystem.poisoned():
        answer = filesystem.path_exists(FILE)

    assert (answer.code, answer.touched) == (Code.UNKNOWN, False)
    assert filesystem.path_exists(FILE).code == 0


def test_a_poisoned_status_is_overwritten(raw_filesystem):
    filesystem = raw_filesystem()
    with filesystem.poisoned():
        assert filesystem.path_exists(FILE).code == 0
        assert filesystem.paths_exist([FILE]).value == [0]


def test_a_message_that_is_no_text_is_told(raw_filesystem):
    answer = raw_filesystem("message-not-utf8").path_exists(FILE)

    assert (answer.code, answer.message_is_text) == (Code.NOT_FOUND, False)


def test_a_message_that_is_not_there_is_empty(raw_filesystem):
    answer = raw_filesystem("message-null").path_exists(FILE)

    assert (answer.code, answer.message) == (Code.NOT_FOUND, "")


def test_paths_without_a_status_are_seen(raw_filesystem):
    assert raw_filesystem("paths-exist-silent").paths_exist([FILE]).touched is False


# ---- Plugins that misbehave: the answer is the plugin's own ----


@pytest.mark.parametrize(
    ("variant", "code", "returned", "value"),
    [
        ("read-short", Code.OK, 2, b"he"),
        ("read-minus-one", Code.OK, -1, b""),
        ("read-too-many", Code.OK, 20, b"hell"),
        ("read-error-with-data", Code.DATA_LOSS, 4, b"hell"),
        ("read-fails", Code.UNAVAILABLE, 0, b""),
    ],
)
def test_a_read_is_what_the_plugin_made_of_it(raw_filesystem, variant, code, returned, value):
    answer = _read(raw_filesystem(variant), 4)

    assert (answer.code, answer.returned, answer.value) == (code, returned, value)


def test_a_reader_without_a_handle_is_a_reader(raw_filesystem):
    reader = raw_filesystem("open-without-handle").new_random_access_file(FILE).value

    assert reader.handle == 0
    assert reader.read(0, 1).code == Code.OUT_OF_RANGE


@pytest.mark.parametrize(
    ("variant", "code", "returned", "value"),
    [
        ("children-minus-one", Code.OK, -1, None),
        ("children-array-null", Code.OK, 2, []),
        ("children-none-array-null", Code.OK, 0, []),
        ("children-entry-null", Code.OK, 2, ["first", None]),
        ("children-error-with-entries", Code.UNAVAILABLE, 1, []),
        ("children-name-with-slash", Code.OK, 2, ["good", "a/b"]),
    ],
)
def test_a_listing_is_what_the_plugin_made_of_it(raw_filesystem, variant, code, returned, value):
    answer = raw_filesystem(variant).get_children(ROOT)

    assert (answer.code, answer.returned, answer.value) == (code, returned, value)


def test_statistics_that_nobody_wrote_are_none(raw_filesystem):
    answer = raw_filesystem("stat-untouched").stat(FILE)

    assert (answer.code, answer.value) == (0, None)


def test_counters_that_nobody_wrote_are_seen(raw_filesystem):
    answer = raw_filesystem("delete-recursively-untouched").delete_recursively(FILE)

    assert answer.value == (_UNTOUCHED, _UNTOUCHED)


def test_a_size_of_minus_one_is_handed_on(raw_filesystem):
    answer = raw_filesystem("size-minus-one").get_file_size(FILE)

    assert (answer.code, answer.value, answer.returned) == (0, -1, -1)


def test_a_name_of_null_is_none_and_blocks_operations(fixture_tables):
    filesystem = SlotFilesystem(fixture_tables("translate-null"))
    filesystem.init()

    assert filesystem.translate_name(FILE).value is None
    with pytest.raises(Blocked, match="translate_name"):
        filesystem.path_exists(FILE)


# ---- What is not there ----


def test_a_slot_that_is_null_is_unsupported(raw_filesystem):
    filesystem = raw_filesystem("nothing-but-init")

    with pytest.raises(Unsupported, match="path_exists"):
        filesystem.path_exists(FILE)
    with pytest.raises(Unsupported, match="translate_name"):
        filesystem.translate_name(FILE)


def test_slots_are_told_by_their_table(raw_filesystem):
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
