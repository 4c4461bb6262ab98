"""A filesystem by its slots and through the host: the same questions have the same answers.

The host has no count that a C function returns, and does not pass on an empty path.
"""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.by_slots import SlotFilesystem
from modular_tf.check.filesystem.operations import host_offers
from modular_tf.filesystem.configuration import Option
from tests.check.subjects.conftest import FILE, ROOT

MISSING = f"{ROOT}/missing"


def _returned(filesystem, answer, expected):
    """Return whether an answer has what the C function returned, and none through the host."""
    return answer.returned == (expected if isinstance(filesystem, SlotFilesystem) else None)


def test_a_file_is_written_and_read(filesystem_of):
    filesystem = filesystem_of()
    writer = filesystem.new_appendable_file(FILE).value

    assert writer.append(b"\0!").ok
    assert (writer.tell().value, _returned(filesystem, writer.tell(), 7)) == (7, True)
    assert writer.flush().ok
    assert writer.sync().ok
    assert writer.close().ok
    writer.cleanup()
    assert filesystem.get_file_size(FILE).value == 7
    reader = filesystem.new_random_access_file(FILE).value
    for offset, n, code, value in (
        (0, 100, Code.OUT_OF_RANGE, b"hello\0!"),
        (1, 3, Code.OK, b"ell"),
        (0, 7, Code.OK, b"hello\0!"),
    ):
        answer = reader.read(offset, n)
        assert (answer.code, answer.value) == (code, value)
        assert _returned(filesystem, answer, len(value))
    reader.close()
    reader.close()


def test_a_region_is_memory(filesystem_of):
    region = filesystem_of().new_read_only_memory_region_from_file(FILE).value

    assert (region.length(), region.content()) == (5, b"hello")
    assert region.address() == region.address() != 0
    region.close()


def test_questions_are_answered(filesystem_of):
    filesystem = filesystem_of()
    statistics = filesystem.stat(FILE).value

    assert (statistics.length, statistics.is_directory, statistics.directory_byte) == (5, False, 0)
    assert filesystem.is_directory(FILE).value is False
    children = filesystem.get_children(ROOT)
    assert (children.value, _returned(filesystem, children, 1)) == (["file"], True)
    for absent in (filesystem.path_exists(MISSING), filesystem.stat(MISSING)):
        assert (absent.code, absent.value) == (Code.NOT_FOUND, None)


def test_many_paths_have_a_code_each(filesystem_of):
    filesystem = filesystem_of()
    answer = filesystem.paths_exist([FILE, MISSING])

    assert (answer.value, answer.returned) == ([0, Code.NOT_FOUND], False)
    without = filesystem.paths_exist([FILE], with_statuses=False)
    assert (without.value, without.returned) == (None, True)
    assert filesystem.paths_exist([]).returned is True


def test_files_are_moved_copied_and_deleted(filesystem_of):
    filesystem = filesystem_of()

    assert filesystem.copy_file(FILE, f"{ROOT}/copy").ok
    assert filesystem.rename_file(f"{ROOT}/copy", f"{ROOT}/moved").ok
    assert sorted(filesystem.get_children(ROOT).value) == ["file", "moved"]
    assert filesystem.delete_file(f"{ROOT}/moved").ok
    filesystem.create_dir(f"{ROOT}/gone")
    assert filesystem.delete_recursively(f"{ROOT}/gone").value == (0, 0)
    failed = filesystem.delete_recursively(f"{ROOT}/gone")
    assert (failed.code, len(failed.value)) == (Code.NOT_FOUND, 2)  # what is left is counted


def test_a_transaction_holds_its_paths(filesystem_of):
    filesystem = filesystem_of()
    absent = filesystem.get_transaction_for_path(FILE)
    assert (absent.code, _returned(filesystem, absent, -1)) == (Code.NOT_FOUND, True)
    token = filesystem.start_transaction().value
    number = getattr(token, "token", token)

    assert number
    assert filesystem.add_to_transaction(FILE, token).ok
    for found in (
        filesystem.get_transaction_for_path(FILE),
        filesystem.get_or_start_transaction_for_path(FILE),
    ):
        assert getattr(found.value, "token", found.value) == number
    assert filesystem.decode_transaction_token(token).value
    assert filesystem.end_transaction(token).ok


def test_an_option_that_is_set_is_the_plugins_own_copy(filesystem_of):
    filesystem = filesystem_of()
    answer = filesystem.get_filesystem_configuration()
    assert _returned(filesystem, answer, len(answer.value))
    assert all(option.name for option in answer.value)
    option = answer.value[0]
    changed = Option(option.name, tuple(type(value)(7) for value in option.values))

    assert filesystem.set_filesystem_configuration([changed]).ok
    assert filesystem.get_filesystem_configuration_option(option.name).value.name == option.name
    assert filesystem.set_filesystem_configuration_option(changed).ok
    found = filesystem.get_filesystem_configuration_option(option.name).value
    assert found.values == changed.values
    unknown = filesystem.get_filesystem_configuration_option("nobody's")
    assert (unknown.code, unknown.value) == (Code.NOT_FOUND, None)


def test_calls_are_recorded_with_what_came_of_them(filesystem_of):
    filesystem = filesystem_of()
    by_slots = isinstance(filesystem, SlotFilesystem)
    filesystem.calls.clear()
    filesystem.path_exists(MISSING)
    reader = filesystem.new_random_access_file(FILE).value
    reader.read(0, 10)

    absent, opened, read = filesystem.calls
    file, found = ("file1", "5, OUT_OF_RANGE") if by_slots else ("file2", "OK")
    assert absent.startswith(f"path_exists('{MISSING}') -> NOT_FOUND")
    assert opened == f"new_random_access_file({FILE!r}, &{file}) -> OK"
    assert read.startswith(f"read({file}, offset=0, n=10) -> {found}")
    reader.close()
    filesystem.path_exists(f"{ROOT}/{'x' * 5000}")
    assert len(filesystem.calls[-1]) < 400


def test_what_the_plugin_lacks_is_unsupported(filesystem_of):
    filesystem = filesystem_of("nothing-but-init")

    with pytest.raises(Unsupported):
        filesystem.stat(FILE)
    assert not filesystem.offers("rename_file")


# ---- Through the host ----


def test_an_error_has_the_plugins_message(host_filesystem):
    answer = host_filesystem("close-fails").new_writable_file(FILE).value.close()

    assert answer.code == Code.DATA_LOSS
    assert answer.message


def test_use_after_close_is_an_error_and_the_users_own_records_are_left_alone(
    host_filesystem, tmp_path
):
    filesystem = host_filesystem()
    writer = filesystem.new_writable_file(FILE).value
    writer.cleanup()

    assert writer.append(b"?").code == Code.FAILED_PRECONDITION
    assert filesystem.flush_caches().ok
    assert (tmp_path / "XDG_STATE_HOME").is_dir() or (tmp_path / "XDG_CACHE_HOME").is_dir()


@pytest.mark.parametrize(
    ("slots", "operation", "works"),
    [
        ({"stat"}, "stat", True),
        ({"stat"}, "is_directory", True),
        ({"stat"}, "get_file_size", True),
        (set(), "is_directory", False),
        (set(), "translate_name", True),
        ({"copy_file", "delete_file"}, "rename_file", True),
        ({"copy_file"}, "rename_file", False),
        ({"path_exists", "stat", "create_dir"}, "recursively_create_dir", True),
        (set(), "create_dir", False),
        (set(), "start_transaction", False),
    ],
)
def test_a_default_works_where_it_has_what_it_needs(slots, operation, works):
    assert host_offers(slots.__contains__, operation) is works
