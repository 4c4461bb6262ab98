"""The subject of the host: the same questions, answered through a service of this package."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.operations import host_offers
from modular_tf.check.filesystem.session import FilesystemSession
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target
from tests.check.subjects.conftest import FILE, ROOT


@pytest.fixture
def host_filesystem(fixture_plugin, tmp_path):
    """Return the filesystem of a variant by way of a service, with a file of five bytes in it."""
    opened = []

    def open_variant(variant="good"):
        path = str(fixture_plugin(variant))
        target = Target(path, "filesystem", Pass.HOST, scheme="fixture", scratch=str(tmp_path))
        session = FilesystemSession(target)
        opened.append(session)
        if session.access.has("append"):
            writer = session.access.new_writable_file(FILE).value
            writer.append(b"hello")
            writer.close()
        return session.access

    yield open_variant
    for session in opened:
        session.close()


def test_the_end_of_a_file_is_a_code_as_it_is_for_the_slots(host_filesystem):
    reader = host_filesystem().new_random_access_file(FILE).value
    short, whole, nothing = reader.read(2, 10), reader.read(0, 5), reader.read(9, 0)
    reader.close()
    reader.close()

    assert (short.code, short.value, short.returned) == (Code.OUT_OF_RANGE, b"llo", None)
    assert (whole.code, whole.value) == (0, b"hello")
    assert (nothing.code, nothing.value) == (0, b"")


def test_a_file_is_written(host_filesystem):
    filesystem = host_filesystem()
    writer = filesystem.new_appendable_file(FILE).value

    assert writer.append(b"!").ok
    assert writer.tell().value == 6
    assert writer.flush().ok
    assert writer.sync().ok
    assert writer.close().ok
    writer.cleanup()
    assert writer.append(b"?").code == Code.FAILED_PRECONDITION
    assert filesystem.get_file_size(FILE).value == 6


def test_a_region_is_memory(host_filesystem):
    region = host_filesystem().new_read_only_memory_region_from_file(FILE).value

    assert (region.length(), region.content()) == (5, b"hello")
    assert region.address() == region.address() != 0
    region.close()


def test_no_is_not_found(host_filesystem):
    filesystem = host_filesystem()
    missing = filesystem.path_exists(f"{ROOT}/missing")

    assert (missing.code, missing.value) == (Code.NOT_FOUND, None)
    assert filesystem.paths_exist([FILE, f"{ROOT}/missing"]).value == [0, Code.NOT_FOUND]
    assert filesystem.paths_exist([FILE, f"{ROOT}/missing"]).returned is False
    assert filesystem.paths_exist([FILE], with_statuses=False).value is None


def test_questions_are_answered(host_filesystem):
    filesystem = host_filesystem()
    statistics = filesystem.stat(FILE).value

    assert (statistics.length, statistics.is_directory) == (5, False)
    assert filesystem.is_directory(FILE).value is False
    assert filesystem.get_children(ROOT).value == ["file"]
    assert filesystem.stat(f"{ROOT}/missing").code == Code.NOT_FOUND
    assert filesystem.stat(f"{ROOT}/missing").value is None


def test_an_error_has_the_plugins_message(host_filesystem):
    answer = host_filesystem("close-fails").new_writable_file(FILE).value.close()

    assert answer.code == Code.DATA_LOSS
    assert answer.message


def test_what_cannot_be_deleted_is_counted(host_filesystem):
    filesystem = host_filesystem()
    filesystem.create_dir(f"{ROOT}/gone")

    assert filesystem.delete_recursively(f"{ROOT}/gone").value == (0, 0)
    failed = filesystem.delete_recursively(f"{ROOT}/gone")
    assert (failed.code, len(failed.value)) == (Code.NOT_FOUND, 2)


def test_what_the_plugin_lacks_is_unsupported(host_filesystem):
    filesystem = host_filesystem("nothing-but-init")

    with pytest.raises(Unsupported):
        filesystem.stat(FILE)
    assert not filesystem.offers("rename_file")
    assert filesystem.flush_caches().ok


def test_transactions_and_options_are_those_of_the_plugin(host_filesystem):
    filesystem = host_filesystem()
    token = filesystem.start_transaction().value
    options = filesystem.get_filesystem_configuration().value

    assert filesystem.add_to_transaction(FILE, token).ok
    assert filesystem.get_transaction_for_path(FILE).value.token == token.token
    assert filesystem.decode_transaction_token(token).value
    assert filesystem.end_transaction(token).ok
    assert filesystem.set_filesystem_configuration(options[:1]).ok
    assert filesystem.get_filesystem_configuration_option(options[0].name).value == options[0]
    assert filesystem.set_filesystem_configuration_option(options[0]).ok


def test_calls_are_kept_with_what_came_of_them(host_filesystem):
    filesystem = host_filesystem()
    filesystem.calls.clear()
    filesystem.path_exists(f"{ROOT}/missing")

    assert filesystem.calls[0].startswith(f"path_exists('{ROOT}/missing') -> NOT_FOUND")


def test_the_users_own_records_are_left_alone(host_filesystem, tmp_path):
    host_filesystem()

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
