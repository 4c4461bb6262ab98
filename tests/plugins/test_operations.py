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
from tests.plugins.matrix import own_scheme, variants

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


def _read(filesystem, _path=_FILE):
    with filesystem.new_random_access_file(_FILE) as reader:
        return reader.read(0, 5)


def _read_to_the_end(filesystem, path):
    with filesystem.open(path, "rb") as file:
        return file.read()


def _append(filesystem, path):
    with filesystem.new_writable_file(path) as writer:
        writer.append(b"x")


def _tell(filesystem, path):
    with filesystem.new_writable_file(path) as writer:
        return writer.tell()


def _made(operation):
    """Return a function that makes an operation of a filesystem on a path."""
    return lambda filesystem, path: getattr(filesystem, operation)(path)


def _copy_of_the_file(filesystem, path):
    filesystem.copy_file(_FILE, path)
    return _read_to_the_end(filesystem, path)


def _children_with_one_made(filesystem, _path):
    filesystem.create_dir(f"{_ROOT}/made")
    return sorted(filesystem.get_children(_ROOT))


def _deleted(filesystem, path):
    filesystem.create_dir(path)
    return filesystem.delete_recursively(path)


_exists, _stat, _size = _made("path_exists"), _made("stat"), _made("get_file_size")
_children, _matching = _made("get_children"), _made("get_matching_paths")
_is_directory, _translate = _made("is_directory"), _made("translate_name")
_ABSENT, _OTHER = f"{_ROOT}/absent", f"{_ROOT}/other"
_NO_CHILD = "which no child can have"
_REFUSED = {
    "code-99": (_exists, _FILE, UnknownError, None),
    "code-minus-one": (_exists, _FILE, UnknownError, None),
    "exists-denied": (_exists, _FILE, PermissionDeniedError, "no"),
    "read-minus-one": (_read, _FILE, InternalError, "read"),
    "read-too-many": (_read, _FILE, InternalError, "read"),
    "read-error-with-data": (_read, _FILE, DataLossError, "the checksum does not match"),
    "read-fails": (_read_to_the_end, _FILE, UnavailableError, "the store is down"),
    "append-fails": (_append, _OTHER, ResourceExhaustedError, "the disk is full"),
    "tell-minus-one": (_tell, _OTHER, InternalError, "tell"),
    "stat-untouched": (_stat, _FILE, InternalError, "stat"),
    "stat-negative": (_stat, _FILE, InternalError, "stat"),
    "size-minus-one": (_size, _FILE, InternalError, "get_file_size"),
    "children-minus-one": (_children, _ROOT, InternalError, "get_children"),
    "children-array-null": (_children, _ROOT, InternalError, "get_children"),
    "children-entry-null": (_children, _ROOT, InternalError, "get_children"),
    "children-error-with-entries": (_children, _ROOT, UnavailableError, "only the first page came"),
    "children-name-empty": (_children, _ROOT, InternalError, _NO_CHILD),
    "children-name-dot-dot": (_children, _ROOT, InternalError, _NO_CHILD),
    "children-name-with-slash": (_children, _ROOT, InternalError, _NO_CHILD),
    "children-throws": (_children, _ROOT, InternalError, "thrown by get_children"),
    "matching-entry-null": (_matching, f"{_ROOT}/*", InternalError, "get_matching_paths"),
    "translate-null": (_children, _FILE, InternalError, "translate_name"),
}


@pytest.mark.parametrize(
    ("filesystem", "call", "path", "error", "message"),
    [(variant, *row) for variant, row in _REFUSED.items()],
    ids=list(_REFUSED),
    indirect=["filesystem"],
)
def test_what_cannot_be_is_an_error(filesystem, call, path, error, message):
    with pytest.raises(error, match=message):
        call(filesystem, path)


@pytest.mark.parametrize(
    ("filesystem", "call", "path", "answer"),
    [
        ("message-null", _exists, _FILE, False),
        ("message-not-utf8", _exists, _FILE, False),
        ("message-aliased", _exists, _FILE, False),
        # A status that nobody touched is success.
        ("status-untouched", _exists, _ABSENT, True),
        ("status-untouched", _children_with_one_made, _ROOT, ["file", "made"]),
        # Short reads end nothing, and the end is found.
        ("read-short", _copy_of_the_file, f"{_ROOT}/copy", b"hello"),
        ("read-end-unsaid", _copy_of_the_file, f"{_ROOT}/copy", b"hello"),
        ("open-without-handle", _read, _FILE, b""),
        ("translate-empty", _translate, _FILE, ""),
        ("children-none-array-null", _children, _ROOT, []),
        ("children-name-trailing-slash", _children, _ROOT, ["folder", "good"]),
        ("children-name-not-utf8", _children, _ROOT, ["good", "\udcff\udcfe"]),
        ("paths-exist-lies", _made("paths_exist"), [_FILE, _ABSENT], [True, False]),
        # A directory needs both, OK and true.
        ("directory-ok-false", _is_directory, _FILE, False),
        ("directory-ok-false", _is_directory, _ROOT, True),
        ("delete-recursively-leaves-some", _made("delete_recursively"), _ROOT, (2, 1)),
        ("delete-recursively-untouched", _deleted, f"{_ROOT}/made", (0, 0)),
    ],
    indirect=["filesystem"],
)
def test_what_can_be_is_an_answer(filesystem, call, path, answer):
    assert call(filesystem, path) == answer


@on("read-in-company")
def test_reads_of_one_file_run_in_parallel(filesystem):
    with filesystem.new_random_access_file(_FILE) as reader, ThreadPoolExecutor(2) as pool:
        reads = [pool.submit(reader.read, 0, 5) for _ in range(2)]

        assert [read.result() for read in reads] == [b"hello", b"hello"]


@on("close-fails")
def test_a_failing_close_is_an_error_and_the_file_is_closed(filesystem):
    writer = filesystem.new_writable_file(_OTHER)
    with pytest.raises(DataLossError, match="the upload was refused"):
        writer.close()

    writer.close()
    assert filesystem.open_count == 0


@on("table-changes-later")
def test_the_host_keeps_its_own_copy_of_the_tables(filesystem):
    assert filesystem.path_exists(_FILE) is True
    assert filesystem.path_exists(_FILE) is True
    assert _read(filesystem) == b"hello"


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


def test_every_variant_is_left_with_balanced_books(fixture_plugin, plugin_report, run_forked):
    unmapped = {"probe", "open"}
    names = [n for n in _books("filesystem") if variants("filesystem")[n].stage not in unmapped]
    libraries = [fixture_plugin(name, scheme=own_scheme(name)) for name in names]

    run_forked(_EXERCISE, *libraries, env=plugin_report.environment)
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
