"""A worker does what the direct call does: operations one after the other, with what each returns.

What is its own (its end, limits, rights, forks, the protocol) is in the other modules.
"""

from __future__ import annotations

import pytest

from modular_tf.errors import ModularTFError
from modular_tf.filesystem.configuration import Option, Transaction
from tests.isolation.conftest import isolated

_ROOT = "fixture://h"


def _append(fs, path, data):
    with fs.new_appendable_file(path) as file:
        file.append(data)
        file.flush()
        file.sync()
        return file.tell()


def _read(fs, path, offset, size):
    with fs.new_random_access_file(path) as file:
        return file.read(offset, size)


def _region(fs, path):
    with fs.new_read_only_memory_region_from_file(path) as region:
        return bytes(region.view())


def _write(fs, path, data):
    with fs.new_writable_file(path) as file:
        file.append(data)
        return file.tell()


def _in_transaction(fs, path):
    transaction = fs.start_transaction()
    fs.add_to_transaction(path, transaction)
    assert fs.get_transaction_for_path(path).token == transaction.token
    other = fs.get_or_start_transaction_for_path(path)
    assert other.token == transaction.token
    told = fs.decode_transaction_token(transaction)
    fs.end_transaction(transaction)
    return told, _outcome(fs, fs.end_transaction, transaction)


# Of the filesystem where it is a name; errors are among the answers.
_OPERATIONS = [
    ("path_exists", f"{_ROOT}/d"),
    ("stat", f"{_ROOT}/d"),
    ("create_dir", f"{_ROOT}/d"),
    ("create_dir", f"{_ROOT}/d"),
    ("create_dir", "other://h/d"),
    ("recursively_create_dir", f"{_ROOT}/a/b/c"),
    ("is_directory", f"{_ROOT}/a/b"),
    (_write, f"{_ROOT}/d/file", b"written"),
    (_write, f"{_ROOT}/d", b"no file"),
    (_append, f"{_ROOT}/d/file", b" and appended"),
    (_read, f"{_ROOT}/d/file", 3, 9),
    (_read, f"{_ROOT}/d/file", 30, 9),
    (_read, f"{_ROOT}/none", 0, 1),
    ("read_file", f"{_ROOT}/d/file"),
    (_region, f"{_ROOT}/d/file"),
    (_region, f"{_ROOT}/none"),
    ("get_file_size", f"{_ROOT}/d/file"),
    ("get_file_size", f"{_ROOT}/none"),
    ("get_children", _ROOT),
    ("get_children", f"{_ROOT}/none"),
    ("get_matching_paths", f"{_ROOT}/*/f*"),
    ("paths_exist", [f"{_ROOT}/d/file", f"{_ROOT}/none"]),
    ("copy_file", f"{_ROOT}/d/file", f"{_ROOT}/a/copy"),
    ("rename_file", f"{_ROOT}/a/copy", f"{_ROOT}/a/renamed"),
    ("rename_file", f"{_ROOT}/none", f"{_ROOT}/a/renamed"),
    ("delete_file", f"{_ROOT}/a/renamed"),
    ("delete_file", f"{_ROOT}/a/renamed"),
    ("delete_dir", f"{_ROOT}/a"),
    ("delete_recursively", f"{_ROOT}/a"),
    ("translate_name", f"{_ROOT}/x//y/../z"),
    ("flush_caches",),
    ("get_filesystem_configuration",),
    ("get_filesystem_configuration_keys",),
    ("get_filesystem_configuration_option", "nobody's"),
    ("set_filesystem_configuration", [Option("block_size", (1,)), Option("block_size", (2,))]),
    ("set_filesystem_configuration", [Option("unknown", (b"x" * 100_000,))]),
    ("set_filesystem_configuration_option", Option("block_size", (-1,))),
    ("get_filesystem_configuration_option", "block_size"),
    (_in_transaction, f"{_ROOT}/a"),
    ("get_transaction_for_path", f"{_ROOT}/a"),
]


def _outcome(fs, operation, *arguments):
    """Return what an operation answers; of an error what users are told."""
    call = getattr(fs, operation) if isinstance(operation, str) else operation
    try:
        found = call(*arguments)
    except ModularTFError as error:
        told = error.message, error.operation, error.plugin, error.path
        return (type(error), *told)
    if hasattr(found, "mtime_nsec"):
        return found._replace(mtime_nsec=0)
    return found if not isinstance(found, Transaction) else "a transaction"


@pytest.mark.parametrize("variant", ["good", "filesystem-size-176"])
def test_a_worker_does_what_the_direct_call_does(variant, fixture_plugin):
    """Also of a plugin that lacks the operations of later releases."""
    answers = []
    for isolation in ("none", "process"):
        with isolated(fixture_plugin(variant), bundled=False, isolation=isolation) as service:
            fs = service.filesystem("fixture")
            found = []
            for operation, *arguments in _OPERATIONS:
                given = (fs, *arguments) if callable(operation) else arguments
                found.append(_outcome(fs, operation, *given))
            answers.append(found)

    for row, here, there in zip(_OPERATIONS, *answers, strict=True):
        assert there == here, row
