"""What users see of a filesystem plugin whose operations misbehave: an error or a sound value."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from modular_tf.errors import (
    DataLossError,
    InternalError,
    ModularTFError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnknownError,
)
from modular_tf.service.service import PluginService
from tests.plugins.matrix import variants

_ROOT = "fixture://host"
_FILE = f"{_ROOT}/file"


@pytest.fixture
def filesystem(request, fixture_plugin):
    """The filesystem of the variant that the test names, with one file of 5 bytes in it."""
    library = fixture_plugin(request.param)
    with PluginService(plugin_paths=[library], bundled=False) as service:
        service.load(library)
        made = service.filesystem("fixture")
        with suppress(ModularTFError), made.new_writable_file(_FILE) as writer:
            writer.append(b"hello")
        yield made


def on(*names):
    """Run the test with these variants."""
    return pytest.mark.parametrize("filesystem", names, indirect=True)


def _read(filesystem, size):
    with filesystem.new_random_access_file(_FILE) as reader:
        return reader.read(0, size)


# ---- Statuses ----


@on("code-99", "code-minus-one")
def test_a_code_that_nobody_knows_is_unknown(filesystem):
    with pytest.raises(UnknownError):
        filesystem.path_exists(_FILE)


@on("message-null", "message-not-utf8", "message-aliased")
def test_not_found_is_an_answer_whatever_its_message(filesystem):
    assert filesystem.path_exists(_FILE) is False


@on("exists-denied")
def test_no_permission_to_know_is_not_no(filesystem):
    with pytest.raises(PermissionDeniedError, match="no"):
        filesystem.path_exists(_FILE)


@on("status-untouched")
def test_a_status_that_nobody_touched_is_success(filesystem):
    filesystem.create_dir(f"{_ROOT}/made")

    assert filesystem.path_exists(f"{_ROOT}/absent") is True
    assert "made" in filesystem.get_children(_ROOT)


# ---- Reading ----


@on("read-short", "read-end-unsaid")
def test_short_reads_end_nothing_and_the_end_is_found(filesystem):
    filesystem.copy_file(_FILE, f"{_ROOT}/copy")

    with filesystem.open(f"{_ROOT}/copy", "rb") as file:
        assert file.read() == b"hello"


@on("read-minus-one", "read-too-many")
def test_an_impossible_count_is_an_error(filesystem):
    with pytest.raises(InternalError, match="read"):
        _read(filesystem, 5)


@on("read-error-with-data")
def test_data_that_came_with_an_error_is_not_handed_on(filesystem):
    with pytest.raises(DataLossError, match="the checksum does not match"):
        _read(filesystem, 5)


@on("read-fails")
def test_a_failing_read_is_an_error_not_the_end(filesystem):
    with (
        pytest.raises(UnavailableError, match="the store is down"),
        filesystem.open(_FILE, "rb") as file,
    ):
        file.read()


@on("read-in-company")
def test_reads_of_one_file_run_in_parallel(filesystem):
    with filesystem.new_random_access_file(_FILE) as reader, ThreadPoolExecutor(2) as pool:
        reads = [pool.submit(reader.read, 0, 5) for _ in range(2)]

        assert [read.result() for read in reads] == [b"hello", b"hello"]


@on("open-without-handle")
def test_a_reader_may_have_no_handle(filesystem):
    assert _read(filesystem, 5) == b""


# ---- Writing ----


@on("append-fails")
def test_a_full_disk_is_an_error(filesystem):
    with (
        filesystem.new_writable_file(f"{_ROOT}/other") as writer,
        pytest.raises(ResourceExhaustedError, match="the disk is full"),
    ):
        writer.append(b"x")


@on("close-fails")
def test_a_failing_close_is_an_error_and_the_file_is_closed(filesystem):
    writer = filesystem.new_writable_file(f"{_ROOT}/other")
    with pytest.raises(DataLossError, match="the upload was refused"):
        writer.close()

    writer.close()
    assert filesystem.open_count == 0


@on("tell-minus-one")
def test_a_negative_position_is_an_error(filesystem):
    with (
        filesystem.new_writable_file(f"{_ROOT}/other") as writer,
        pytest.raises(InternalError, match="tell"),
    ):
        writer.tell()


# ---- Paths ----


@on("paths-exist-lies")
def test_the_statuses_of_paths_exist_are_believed(filesystem):
    assert filesystem.paths_exist([_FILE, f"{_ROOT}/absent"]) == [True, False]


@on("stat-untouched", "stat-negative")
def test_impossible_statistics_are_an_error(filesystem):
    with pytest.raises(InternalError, match="stat"):
        filesystem.stat(_FILE)


@on("size-minus-one")
def test_a_negative_size_is_an_error(filesystem):
    with pytest.raises(InternalError, match="get_file_size"):
        filesystem.get_file_size(_FILE)


@on("directory-ok-false")
def test_a_directory_needs_ok_and_true(filesystem):
    assert filesystem.is_directory(_FILE) is False
    assert filesystem.is_directory(_ROOT) is True


@on("delete-recursively-untouched")
def test_counts_that_nobody_set_are_zero(filesystem):
    filesystem.create_dir(f"{_ROOT}/made")

    assert filesystem.delete_recursively(f"{_ROOT}/made") == (0, 0)


@on("delete-recursively-leaves-some")
def test_what_was_left_is_reported_even_with_ok(filesystem):
    assert filesystem.delete_recursively(_ROOT) == (2, 1)


@on("translate-null")
def test_a_name_that_is_null_is_an_error_of_every_operation(filesystem):
    for operation in (filesystem.translate_name, filesystem.path_exists, filesystem.get_children):
        with pytest.raises(InternalError, match="translate_name"):
            operation(_FILE)


@on("translate-empty")
def test_a_name_may_be_empty(filesystem):
    assert filesystem.translate_name(_FILE) == ""


# ---- Listings ----


@on("children-minus-one", "children-array-null", "children-entry-null")
def test_an_impossible_list_is_an_error(filesystem):
    with pytest.raises(InternalError, match="get_children"):
        filesystem.get_children(_ROOT)


@on("children-none-array-null")
def test_an_empty_list_needs_no_array(filesystem):
    assert filesystem.get_children(_ROOT) == []


@on("children-error-with-entries")
def test_half_a_list_is_an_error(filesystem):
    with pytest.raises(UnavailableError, match="only the first page came"):
        filesystem.get_children(_ROOT)


@on(
    "children-name-empty",
    "children-name-dot",
    "children-name-dot-dot",
    "children-name-with-slash",
    "children-name-slash",
    "children-name-absolute",
)
def test_a_name_that_no_child_can_have_is_an_error(filesystem):
    with pytest.raises(InternalError, match="which no child can have"):
        filesystem.get_children(_ROOT)


@on("children-name-trailing-slash")
def test_the_slash_behind_a_folder_is_dropped(filesystem):
    assert filesystem.get_children(_ROOT) == ["folder", "good"]


@on("children-name-not-utf8")
def test_names_are_bytes(filesystem):
    assert filesystem.get_children(_ROOT) == ["good", "\udcff\udcfe"]


@on("children-throws")
def test_an_exception_of_the_plugin_is_an_error(filesystem):
    with pytest.raises(InternalError, match="thrown by get_children"):
        filesystem.get_children(_ROOT)


@on("matching-entry-null")
def test_an_impossible_list_of_matches_is_an_error(filesystem):
    with pytest.raises(InternalError, match="get_matching_paths"):
        filesystem.get_matching_paths(f"{_ROOT}/*")


@on("table-changes-later")
def test_the_host_keeps_its_own_copy_of_the_tables(filesystem):
    assert filesystem.path_exists(_FILE) is True
    assert filesystem.path_exists(_FILE) is True
    assert _read(filesystem, 5) == b"hello"


# ---- Memory and files: every variant leaves the plugin's books balanced ----

_EXERCISE = """
import contextlib, sys
from modular_tf.errors import ModularTFError
from modular_tf.service.service import PluginService

service = PluginService(plugin_paths=sys.argv[1:], bundled=False)
for library in sys.argv[1:]:
    service.load(library)
for scheme in service.schemes():
    fs, root = service.filesystem(scheme), f"{scheme}://host"
    def write():
        with fs.new_writable_file(f"{root}/file") as file:
            file.append(b"hello")
            file.tell()
    def read():
        with fs.new_random_access_file(f"{root}/file") as file:
            file.read(0, 100)
    steps = [
        lambda: fs.create_dir(f"{root}/made"),
        write,
        read,
        lambda: fs.new_read_only_memory_region_from_file(f"{root}/file").close(),
        lambda: fs.paths_exist([f"{root}/file", f"{root}/absent"]),
        lambda: fs.get_children(root),
        lambda: fs.get_children(f"{root}/absent"),
        lambda: fs.get_matching_paths(f"{root}/*"),
        lambda: fs.translate_name(root),
        lambda: fs.get_filesystem_configuration(),
        lambda: fs.new_appendable_file(f"{root}/file"),  # left open: closing the service ends it
    ]
    for step in steps:
        with contextlib.suppress(ModularTFError):
            step()
"""


def _books(family):
    """Leave out what ends or delays the process, and what breaks the rules of freeing by intent."""
    left_out = {"exists-aborts", "read-in-company", "table-changes-later", "init-plugin-throws"}
    return [v.name for v in variants(family).values() if v.fault is None and v.name not in left_out]


def test_every_variant_is_left_with_balanced_books(fixture_plugin, plugin_report, run_python):
    unmapped = {"probe", "open"}
    names = [n for n in _books("filesystem") if variants("filesystem")[n].stage not in unmapped]
    libraries = [fixture_plugin(name, scheme=f"v{index}") for index, name in enumerate(names)]

    run_python(_EXERCISE, *libraries, env=plugin_report.environment)
    books = plugin_report.processes()

    assert len(books) == len(names)
    assert {book["variant"] for book in books if book["allocated"] != book["freed"]} == _UNFREED
    assert [book["variant"] for book in books if book["bad_frees"]] == []
    assert [b["variant"] for b in books if b["files_opened"] != b["files_cleaned_up"]] == _UNOPENED
    assert [book["variant"] for book in books if book["inits"] != book["cleanups"]] == [
        "init-fails"
    ]


# As in TensorFlow: without both functions for memory, nothing else is looked at.
_UNFREED = {"allocator-null", "free-null"}
# Its readers are cleaned up like any other, but it does not count their opening.
_UNOPENED = ["open-without-handle"]
