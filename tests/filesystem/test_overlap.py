"""Two places are one, or one holds the other, by what they are and not by their spelling."""

from __future__ import annotations

import fsspec
import pytest

from modular_tf.filesystem.location import Overlap, identity, is_link, is_one_name, overlap
from modular_tf.filesystem.python_filesystem import as_filesystem
from tests.filesystem.memory_store import MemoryStore

APART, SAME, HOLDS, WITHIN = Overlap.APART, Overlap.SAME, Overlap.HOLDS, Overlap.WITHIN


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory: real/src/f, a link to real, a hard link to f."""
    (tmp_path / "real" / "src").mkdir(parents=True)
    (tmp_path / "real" / "src" / "f").write_bytes(b"kept")
    (tmp_path / "link").symlink_to("real")
    (tmp_path / "hard").hardlink_to(tmp_path / "real" / "src" / "f")
    (tmp_path / "real" / "src2").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("real/src", "file://{}/real/src/", SAME),
        ("link/src", "real/src", SAME),
        ("real/src/f", "hard", SAME),
        ("link/../real", "real", SAME),
        ("link", "real/src", HOLDS),
        ("real/src/f", "link", WITHIN),
        ("real", "link/src/not/there/yet", HOLDS),
        ("file://{}/link/new", "real", WITHIN),
        ("real/src", "real/src2", APART),
        ("none", "./none/below", HOLDS),
        ("ram://real/src", "real/src", APART),
        ("ram://a/b", "ram://a/./x/../b", SAME),
        ("ram://a/b", "ram://a/bc", APART),
    ],
)
def test_places_of_the_disk_and_of_a_plugin(service, folder, one, other, expected):
    uris = one.format(folder), other.format(folder)
    pairs = [(service.filesystem_for(uri), uri) for uri in uris]
    opposite = {HOLDS: WITHIN, WITHIN: HOLDS}.get(expected, expected)

    assert overlap(*pairs) is expected
    assert overlap(*reversed(pairs)) is opposite


def test_two_schemes_of_one_python_object_are_one_store():
    store = MemoryStore()
    one, two = as_filesystem("one", store), as_filesystem("two", store)
    alien = as_filesystem("alien", MemoryStore())

    assert overlap((one, "one://h/a"), (two, "two://h/a")) is SAME
    assert overlap((one, "one://h/a"), (two, "two://h/a/b")) is HOLDS
    assert overlap((one, "one://h/a"), (alien, "alien://h/a")) is APART


def test_a_filesystem_of_fsspec_for_the_disk_is_the_disk(service, folder):
    disk, local = as_filesystem("disk", fsspec.filesystem("file")), service.filesystem("")

    assert overlap((disk, f"disk://{folder}/link/src"), (local, "real/src")) is SAME
    assert is_link(disk, f"disk://{folder}/link")
    assert identity(disk, f"disk://{folder}/link") == identity(local, "real")


def test_a_link_and_what_it_leads_to_have_two_names(service, folder):
    local = service.filesystem("")
    (folder / "to_f").symlink_to("real/src/f")

    assert is_one_name((local, "link/src/f"), (local, "real/src/f"))
    assert not is_one_name((local, "to_f"), (local, "real/src/f"))
    assert not is_one_name((local, "hard"), (local, "real/src/f"))
