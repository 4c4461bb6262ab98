"""What was found out about a library is recalled as long as it holds, and not longer."""

import os
import shutil
import sqlite3
import struct
from contextlib import closing

import pytest

from modular_tf.discovery.candidate import Kind
from modular_tf.discovery.file_identity import see
from modular_tf.discovery.host_fingerprint import HostFingerprint, host_fingerprint, linking_parts
from modular_tf.service.storage import scan_cache as cache_module
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.scan_cache import ScanCache
from tests.scan_cache.conftest import (
    FINDING,
    is_not_stored,
    is_recalled,
    look_into,
    recalled,
    remember,
    tried,
    write_library,
)


@pytest.fixture
def cache(own_cache):
    return ScanCache.of_process()


def test_what_was_remembered_is_recalled_and_by_others_with_their_next_pass(plugin, cache):
    assert recalled(plugin) is None
    known = tried(plugin)

    assert is_recalled(plugin, known)
    assert known.facts.kinds == {Kind.FILESYSTEM}
    assert known.facts.loadable
    assert known.sha256 == known.seen.sha256
    assert known.finding == FINDING
    assert cache.recall(str(plugin)) is None
    cache.refresh()
    assert cache.recall(str(plugin)) is not None
    cache.forget(str(plugin))
    assert cache.save()
    assert recalled(plugin) is None


# -- the library -------------------------------------------------------------------------------


def test_other_bytes_are_another_library(plugin):
    tried(plugin)
    write_library(plugin, exports=("TF_InitPlugin", "another"))
    assert recalled(plugin) is None
    tried(plugin)
    plugin.unlink()
    assert recalled(plugin) is None


def test_the_same_bytes_with_other_times_are_the_same(plugin, cache):
    known = tried(plugin)
    os.utime(plugin, (1, 1))
    cache.refresh()
    again = cache.recall(str(plugin))

    assert again.seen.identity != known.seen.identity
    assert again._replace(seen=known.seen) == known
    assert cache.save()
    assert is_recalled(plugin, again)


def test_a_link_that_leads_elsewhere_is_another_library(plugin, tmp_path):
    link = tmp_path / "link.so"
    link.symlink_to(plugin)
    tried(link)
    assert recalled(link) is not None
    other = write_library(tmp_path / "other.so", exports=("SE_InitPlugin",))
    link.unlink()
    link.symlink_to(other)

    assert recalled(link) is None


def test_a_library_that_changed_since_it_was_seen_is_not_remembered(plugin, cache):
    """Neither what was probed then, nor what is probed of what it became."""
    seen = see(str(plugin))
    before = look_into(cache, plugin)
    write_library(plugin, exports=("SE_InitPlugin",))
    after = look_into(cache, plugin)

    assert not cache.remember(before)
    assert not cache.remember(after._replace(seen=seen))
    assert cache.recall(str(plugin)) is None


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        (b"no library", "LD-004"),
        (b"\x7fELF\x02\x01\x01", "LD-005"),
        ({"machine": 8}, "LD-008"),
        ({"type": 2}, "LD-009"),
        ({"exports": ("nothing",)}, "LD-010"),
        ({"exports": ("TF_InitGraph",)}, "LD-012"),
    ],
)
def test_what_its_bytes_refuse_is_remembered(tmp_path, content, rule):
    path = tmp_path / "libx.so"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_library(path, **content)
    known = remember(path)

    assert is_recalled(path, known)
    assert not known.facts.loadable
    assert known.facts.problems[0].rule == rule


@pytest.mark.parametrize(
    "lacking", [{"needed": ("libmissing-entirely.so",)}, {"undefined": ("nobody_has_this",)}]
)
def test_what_may_be_installed_at_any_time_is_not_remembered_as_missing(tmp_path, lacking):
    assert is_not_stored(write_library(tmp_path / "x.so", **lacking))


def test_the_damage_of_a_companion_is_not_that_of_the_plugin(tmp_path, cache):
    endless = struct.pack("<4I", 4, 1, 1, 0) + b"\xff" * 64  # a table of hashes
    write_library(tmp_path / "libneeded.so", tables={"gnu_hash": endless})
    more = {"paths": {"runpath": "$ORIGIN"}, "undefined": ("some_function",)}
    path = write_library(tmp_path / "x.so", ("libneeded.so",), **more)

    found = look_into(cache, path)

    assert [problem.rule for problem in found.facts.problems] == ["LD-005"]
    assert is_not_stored(path)


# -- the same bytes elsewhere ------------------------------------------------------------------


@pytest.mark.parametrize("was_tried", [True, False])
def test_a_copy_need_not_be_tried(plugin, tmp_path, was_tried):
    (tried if was_tried else remember)(plugin)
    copy = tmp_path / "elsewhere" / plugin.name
    copy.parent.mkdir()
    shutil.copy(plugin, copy)
    cache = ScanCache.of_process()

    assert cache.recall(str(copy)) is None
    assert cache.finding_for(look_into(cache, copy)) == (FINDING if was_tried else None)


def test_a_copy_elsewhere_of_what_opens_files_must_be_tried(plugin, tmp_path, cache):
    """What its code opens may lie beside it."""
    opened = tmp_path / "libmore.so"
    opened.write_bytes(b"some code")
    finding = FINDING._replace(opened=(see(str(opened)),))
    assert cache.remember(look_into(cache, plugin)._replace(tried=True, finding=finding))
    beside, elsewhere = plugin.with_name("libcopy.so"), tmp_path / "elsewhere" / plugin.name
    elsewhere.parent.mkdir()
    for copy in (beside, elsewhere):
        shutil.copy(plugin, copy)

    found = cache.finding_for(look_into(cache, beside))
    assert [seen.path for seen in found.opened] == [str(opened)]
    assert cache.finding_for(look_into(cache, elsewhere)) is None


def test_a_copy_beside_other_companions_must_be_tried(with_companion, tmp_path, cache):
    tried(with_companion)
    shutil.copytree(with_companion.parent, tmp_path / "copy")
    cache.refresh()

    known = look_into(cache, tmp_path / "copy" / with_companion.name)
    assert cache.finding_for(known) is None


# -- where it is -------------------------------------------------------------------------------


def test_a_cache_of_others_or_another_host_is_not_believed_and_nothing_by_the_privileged(
    plugin, own_cache, monkeypatch
):
    tried(plugin)
    here = host_fingerprint().with_parts(linking_parts(os.environ))
    there = HostFingerprint(tuple((dict(here.parts) | {"kernel": "another"}).items()))
    directory = PrivateDirectory(str(own_cache))

    assert ScanCache(directory, here).recall(str(plugin)) is not None
    assert ScanCache(directory, there).recall(str(plugin)) is None
    with monkeypatch.context() as patch:
        patch.setattr(cache_module, "is_privileged", lambda: True)
        assert recalled(plugin) is None
    (file,) = own_cache.glob("*.sqlite")
    file.chmod(0o666)
    assert recalled(plugin) is None


@pytest.mark.parametrize("entry", ["x", "[]", "[null, null]", "9" * 5000, "[" * 20_000])
def test_a_damaged_entry_is_not_recalled(plugin, own_cache, entry):
    tried(plugin)
    (file,) = own_cache.glob("*.sqlite")
    with closing(sqlite3.connect(file)) as used:
        used.execute("UPDATE library SET entry = ?", (entry,))
        used.commit()

    assert recalled(plugin) is None
