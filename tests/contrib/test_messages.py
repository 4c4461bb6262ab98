"""Filesystem plugins name the path that is at fault, and refuse the use of a closed file."""

from __future__ import annotations

import pytest

from tests.contrib.built_plugin import installed_plugin
from tests.contrib.raw_plugins import raw_filesystem

FAILING = [
    ("new_random_access_file", "missing"),
    ("new_writable_file", "missing/below"),
    ("new_appendable_file", "missing/below"),
    ("new_read_only_memory_region_from_file", "missing"),
    ("create_dir", "missing/below"),
    ("recursively_create_dir", "in the way"),
    ("delete_file", "missing"),
    ("delete_dir", "missing"),
    ("delete_recursively", "missing"),
    ("path_exists", "missing"),
    ("stat", "missing"),
    ("is_directory", "missing"),
    ("get_file_size", "missing"),
    ("get_children", "missing"),
]


FAILING_TO_MOVE = [("missing", "elsewhere"), ("in the way", "missing/below")]


@pytest.fixture(
    params=[("posix_filesystem", "file"), ("ram_filesystem", "ram")], ids=lambda p: p[0]
)
def fs(request, tmp_path):
    """The filesystem of a plugin, by its slots."""
    plugin, scheme = request.param
    with raw_filesystem(installed_plugin(plugin), scheme, tmp_path) as made:
        yield made


def test_the_message_of_a_failure_names_the_path_that_is_at_fault(fs):
    fs.make_file("in the way")
    for slot, name in FAILING:
        answer = getattr(fs, slot)(fs.path(name))
        assert not answer.ok, slot
        assert name in answer.message, (slot, answer)
    for source, target in FAILING_TO_MOVE:
        for move in (fs.rename_file, fs.copy_file):
            answer = move(fs.path(source), fs.path(target))
            assert not answer.ok, move
            assert "missing" in answer.message, answer
