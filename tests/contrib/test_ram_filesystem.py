"""What only the memory has: its paths, its instances, and many threads at once.

What every filesystem has to do is the conformance kit's to try (tests/check).
"""

from __future__ import annotations

import uuid
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest

from modular_tf import PluginService
from modular_tf.errors import FailedPreconditionError
from tests.contrib.disk import CONTENT


@pytest.fixture
def ram(service):
    return service.filesystem("ram")


@pytest.fixture
def root(ram):
    """A directory of its own."""
    made = f"ram://{uuid.uuid4().hex}"
    ram.create_dir(made)
    return made


def write(fs, uri, data, slot="new_writable_file"):
    with getattr(fs, slot)(uri) as file:
        file.append(data)


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("ram://", "/"),
        ("ram://a", "/a"),
        ("ram://a/./b//c/../d/", "/a/b/d"),
        ("ram://h/../../x", "/x"),
        ("/a/b/", "/a/b"),
        ("", "/"),
        ("ram://a%2e/?q#f \\é", "/a%2e/?q#f \\é"),
        ("ram://" + "n" * 4096, "/" + "n" * 4096),
    ],
)
def test_a_uri_is_a_path_whose_first_name_may_stand_for_a_host(ram, uri, path):
    assert ram.translate_name(uri) == path
    assert ram.translate_name(path) == path


def test_the_root_stays(ram, root):
    for operation in (ram.delete_file, ram.delete_dir, ram.delete_recursively):
        with pytest.raises(FailedPreconditionError):
            operation("ram://")
    assert ram.is_directory(root)


def test_the_end_of_the_filesystem_frees_everything():
    for _ in range(2):
        with PluginService() as service:
            service.load("ram_filesystem")
            ram = service.filesystem("ram")
            assert ram.get_children("ram://") == []
            write(ram, "ram://file", CONTENT)


def test_a_tree_may_be_too_deep_for_a_stack(ram, root):
    ram.recursively_create_dir(root + "/d" * 50_000)
    ram.delete_recursively(f"{root}/d")
    assert ram.get_children(root) == []


def test_each_read_sees_whole_appends_only(ram, root):
    """And each append arrives once, and regions keep what they saw."""
    uri, rounds, size = f"{root}/shared", 200, 64
    write(ram, uri, b"x" * size)
    files = [ram.new_appendable_file(uri) for _ in range(3)]
    reader = ram.new_random_access_file(uri)

    def append(number):
        for _ in range(rounds):
            files[number].append(bytes([65 + number]) * size)
        return []

    def read(_):
        return [reader.read(0, 4 * rounds * size) for _ in range(rounds)]

    def map_again(_):
        return [ram.new_read_only_memory_region_from_file(uri) for _ in range(rounds)]

    with ThreadPoolExecutor(5) as threads:
        jobs = [threads.submit(job, n) for n, job in enumerate([append] * 3 + [read, map_again])]
        *_, seen, regions = [job.result() for job in jobs]
    final = ram.read_file(uri)
    counts = Counter(final[at : at + size] for at in range(0, len(final), size))
    assert counts == {b"x" * size: 1, **{bytes([65 + n]) * size: rounds for n in range(3)}}
    for data in (*seen, *(bytes(region.view()) for region in regions)):
        assert len(data) % size == 0
        assert final.startswith(data)
    for opened in (*files, reader, *regions):
        opened.close()
