"""Every operation fails with every code, and no native error is left behind."""

from __future__ import annotations

from contextlib import suppress

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.errors import ModularTFError
from tests.filesystem.plugins import built, service_of
from tests.fixtures.native_errors import none_is_left

_CODES = [code for code in Code if code is not Code.OK]
_ON_PATHS = (
    *("new_random_access_file", "new_writable_file", "new_appendable_file"),
    *("new_read_only_memory_region_from_file", "create_dir", "recursively_create_dir"),
    *("delete_file", "delete_dir", "delete_recursively", "path_exists", "stat", "is_directory"),
    *("get_file_size", "get_children", "get_matching_paths"),
)
_OTHERS = {
    "rename_file": lambda fs, uri: fs.rename_file(uri, uri),
    "copy_file": lambda fs, uri: fs.copy_file(uri, uri),
    "paths_exist": lambda fs, uri: fs.paths_exist([uri, uri, uri]),
    "option": lambda fs, uri: fs.get_filesystem_configuration_option(uri.rpartition("/")[2]),
    "start_transaction": lambda fs, _uri: fs.start_transaction(),
}


@pytest.fixture(scope="module")
def failing():
    with service_of(built("hostile")) as service:
        yield service.filesystem("fails")


@pytest.mark.parametrize("operation", [*_ON_PATHS, *_OTHERS])
def test_an_operation_on_a_path(operation, failing):
    call = _OTHERS.get(operation, lambda fs, uri: getattr(fs, operation)(uri))
    with none_is_left():
        for code in _CODES:
            for other in _CODES:
                with suppress(ModularTFError):
                    call(failing, f"fails://h/{code:d}/{other:d}")


@pytest.mark.parametrize("code", _CODES)
def test_a_code_is_the_one_that_is_raised(code, failing):
    with pytest.raises(ModularTFError) as caught:
        failing.stat(f"fails://h/{code:d}")

    assert caught.value.code is code
