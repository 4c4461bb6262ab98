"""What was found out about a library is recalled as long as it holds, and not longer."""

from __future__ import annotations

import json
import os
import shutil
import struct
from typing import TYPE_CHECKING

import pytest

from modular_tf.codec import encode
from modular_tf.discovery.candidate import Kind
from modular_tf.discovery.file_identity import see
from modular_tf.discovery.host_fingerprint import (
    HostFingerprint,
    host_fingerprint,
    linking_parts,
)
from modular_tf.service.storage import scan_cache as cache_module
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.scan_cache import CacheEntry, ScanCache
from tests.scan_cache.conftest import (
    FINDING,
    fill,
    is_not_kept,
    look_into,
    recalled,
    tried,
    untimed,
    write_library,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_nothing_is_known_at_first(plugin: Path):
    assert recalled(plugin) is None


def test_what_was_remembered_is_recalled(plugin: Path):
    known = tried(plugin)

    assert untimed(recalled(plugin)) == untimed(known)
    assert known.facts.kinds == {Kind.FILESYSTEM}
    assert known.facts.loadable
    assert known.sha256 == known.seen.sha256
    assert known.finding == FINDING


def test_the_same_process_recalls_it_unsaved(plugin: Path):
    cache = ScanCache.of_process()
    found = look_into(cache, plugin)
    assert found is not None
    cache.remember(found)

    assert untimed(cache.recall(str(plugin))) == untimed(found)
    assert recalled(plugin) is None


def test_it_is_forgotten_on_demand(plugin: Path):
    tried(plugin)
    cache = ScanCache.of_process()
    cache.forget(str(plugin))

    assert cache.recall(str(plugin)) is None
    cache.save()
    assert recalled(plugin) is None


def test_a_pass_sees_what_other_processes_remembered(plugin: Path):
    cache = ScanCache.of_process()
    tried(plugin)

    assert cache.recall(str(plugin)) is None
    cache.refresh()
    assert cache.recall(str(plugin)) is not None


# -- the library -------------------------------------------------------------------------------


def test_other_bytes_are_another_library(plugin: Path):
    tried(plugin)
    write_library(plugin, exports=("TF_InitPlugin", "other_name_xx", "third"))

    assert recalled(plugin) is None


def test_a_replaced_library_is_another(plugin: Path, tmp_path: Path):
    tried(plugin)
    before = plugin.stat()
    other = write_library(tmp_path / "x.so", exports=("TF_InitPlugin", "anotherxexport", "third"),
                          soname=plugin.name)  # fmt: skip
    os.utime(other, ns=(before.st_atime_ns, before.st_mtime_ns))
    other.rename(plugin)
    assert plugin.stat().st_size == before.st_size

    assert recalled(plugin) is None


def test_the_same_bytes_with_other_times_are_the_same(plugin: Path):
    known = tried(plugin)
    os.utime(plugin, (1, 1))
    cache = ScanCache.of_process()
    again = cache.recall(str(plugin))

    assert again is not None
    assert again.seen.identity != known.seen.identity
    assert again._replace(seen=known.seen) == known
    assert cache.save()
    assert untimed(recalled(plugin)) == untimed(again)


def test_a_link_that_leads_elsewhere_is_another_library(plugin: Path, tmp_path: Path):
    link = tmp_path / "link.so"
    link.symlink_to(plugin)
    tried(link)
    assert recalled(link) is not None
    other = write_library(tmp_path / "other.so", exports=("SE_InitPlugin",))
    link.unlink()
    link.symlink_to(other)

    assert recalled(link) is None


def test_a_library_that_is_gone_is_not_recalled(plugin: Path):
    tried(plugin)
    plugin.unlink()

    assert recalled(plugin) is None


def test_a_library_that_changed_since_it_was_seen_is_not_remembered(plugin: Path):
    cache = ScanCache.of_process()
    found = look_into(cache, plugin)
    assert found is not None
    write_library(plugin, exports=("SE_InitPlugin",))

    assert not cache.remember(found)
    assert cache.recall(str(plugin)) is None


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("not-elf.so", b"no library", "LD-004"),
        ("cut.so", b"\x7fELF\x02\x01\x01", "LD-005"),
        ("other-machine.so", {"machine": 8}, "LD-008"),
        ("program.so", {"type": 2}, "LD-009"),
        ("no-init.so", {"exports": ("nothing",)}, "LD-010"),
        ("graph.so", {"exports": ("TF_InitGraph",)}, "LD-012"),
    ],
)
def test_what_its_bytes_refuse_is_remembered(tmp_path: Path, name, content, rule):
    path = tmp_path / name
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        write_library(path, **content)
    cache = ScanCache.of_process()
    known = look_into(cache, path)
    assert known is not None
    cache.remember(known)
    cache.save()

    again = recalled(path)
    assert untimed(again) == untimed(known)
    assert again is not None
    assert not again.facts.loadable
    assert [problem.rule for problem in again.facts.problems][:1] == [rule]


def test_a_missing_library_is_not_remembered(tmp_path: Path):
    """It may be installed at any time."""
    path = write_library(tmp_path / "x.so", ("libmissing-entirely.so",))

    assert is_not_kept(path)


def test_a_missing_symbol_is_not_remembered(tmp_path: Path):
    path = write_library(tmp_path / "x.so", undefined=("nobody_has_this",))

    assert is_not_kept(path)


def test_the_damage_of_a_companion_is_not_that_of_the_plugin(tmp_path: Path):
    endless = struct.pack("<4I", 4, 1, 1, 0) + b"\xff" * 64  # a table of hashes
    write_library(tmp_path / "libneeded.so", tables={"gnu_hash": endless})
    path = write_library(
        tmp_path / "x.so",
        ("libneeded.so",),
        paths={"runpath": "$ORIGIN"},
        undefined=("some_function",),
    )
    found = look_into(ScanCache.of_process(), path)

    assert found is not None
    assert [problem.rule for problem in found.facts.problems] == ["LD-005"]
    assert is_not_kept(path)


# -- the same bytes elsewhere ------------------------------------------------------------------


def test_a_copy_need_not_be_tried(plugin: Path, tmp_path: Path):
    tried(plugin)
    copy = tmp_path / "elsewhere" / plugin.name
    copy.parent.mkdir()
    shutil.copy(plugin, copy)
    cache = ScanCache.of_process()
    known = look_into(cache, copy)

    assert known is not None
    assert cache.recall(str(copy)) is None
    assert cache.finding_for(known) == FINDING


def test_a_copy_elsewhere_of_what_opens_files_must_be_tried(plugin: Path, tmp_path: Path):
    """What its code opens may lie beside it."""
    opened = tmp_path / "libmore.so"
    opened.write_bytes(b"some code")
    cache = ScanCache.of_process()
    found = look_into(cache, plugin)
    finding = FINDING._replace(opened=(see(str(opened)),))
    assert cache.remember(found._replace(tried=True, finding=finding))
    beside, elsewhere = plugin.with_name("libcopy.so"), tmp_path / "elsewhere" / plugin.name
    elsewhere.parent.mkdir()
    for copy in (beside, elsewhere):
        shutil.copy(plugin, copy)

    found = cache.finding_for(look_into(cache, beside))
    assert [seen.path for seen in found.opened] == [str(opened)]
    assert cache.finding_for(look_into(cache, elsewhere)) is None


def test_a_copy_beside_other_companions_must_be_tried(with_companion: Path, tmp_path: Path):
    tried(with_companion)
    shutil.copytree(with_companion.parent, tmp_path / "copy")
    cache = ScanCache.of_process()
    known = look_into(cache, tmp_path / "copy" / with_companion.name)

    assert known is not None
    assert cache.finding_for(known) is None


def test_what_was_not_tried_says_nothing_of_a_copy(plugin: Path, tmp_path: Path):
    cache = ScanCache.of_process()
    fill(cache, plugin)
    shutil.copy(plugin, tmp_path / "copy.so")
    known = look_into(cache, tmp_path / "copy.so")

    assert known is not None
    assert cache.finding_for(known) is None


def test_a_new_linker_cache_alone_needs_no_new_trial(with_companion: Path, tmp_path, monkeypatch):
    own = tmp_path / "ld.so.cache"
    own.write_bytes(b"one")
    monkeypatch.setattr(cache_module, "LINKER_CACHE", str(own))
    tried(with_companion)
    own.write_bytes(b"two")
    cache = ScanCache.of_process()
    assert cache.recall(str(with_companion)) is None
    known = look_into(cache, with_companion)

    assert known is not None
    assert cache.finding_for(known) == FINDING


# -- where it is -------------------------------------------------------------------------------


def test_without_a_place_it_lasts_as_long_as_the_process(plugin: Path):
    cache = ScanCache.of_process({"HOME": "/nonexistent"})
    found = look_into(cache, plugin)
    assert found is not None
    assert cache.remember(found)

    assert not cache.save()
    assert untimed(cache.recall(str(plugin))) == untimed(found)


def test_a_privileged_process_has_none(plugin: Path, own_cache: Path, monkeypatch):
    tried(plugin)
    monkeypatch.setattr(cache_module, "is_privileged", lambda: True)

    assert recalled(plugin) is None


def test_a_cache_that_others_may_write_is_not_believed(plugin: Path, own_cache: Path):
    tried(plugin)
    (file,) = own_cache.glob("*.sqlite")
    file.chmod(0o666)

    assert recalled(plugin) is None


def test_a_cache_of_another_host_is_not_believed(plugin: Path, own_cache: Path):
    tried(plugin)
    here = host_fingerprint().with_parts(linking_parts(os.environ))
    parts = dict(here.parts) | {"kernel": "another"}
    there = HostFingerprint(tuple(parts.items()))
    directory = PrivateDirectory(str(own_cache))

    assert ScanCache(directory, here).recall(str(plugin)) is not None
    assert ScanCache(directory, there).recall(str(plugin)) is None


# -- what says that it is right ----------------------------------------------------------------


WRONG = [None, True, 1, 1.5, "text", [], {}, [None], {"a": 1}, [[]], "LD-004", -1, 10**40]


@pytest.mark.parametrize("wrong", WRONG, ids=repr)
def test_a_value_of_another_type_is_not_recalled(plugin: Path, own_cache: Path, wrong):
    """In each place: a row may say anything."""
    known = tried(plugin)
    cache = ScanCache.of_process()
    sha256, dependencies, text = cache._libraries.get(str(plugin))
    value = json.loads(text)

    def places(node, path=()):
        yield path
        items = node.items() if isinstance(node, dict) else enumerate(node)
        for key, child in items:
            if isinstance(child, (dict, list)):
                yield from places(child, (*path, key))
            else:
                yield (*path, key)

    for place in [place for place in places(value) if place]:
        changed = json.loads(json.dumps(value))
        node = changed
        for key in place[:-1]:
            node = node[key]
        node[place[-1]] = wrong
        cache._libraries.put(str(plugin), sha256, dependencies, json.dumps(changed))

        found = cache.recall(str(plugin))
        assert found is None or isinstance(found, CacheEntry)
        if found is not None:
            assert type(found.tried) is bool
            assert found.finding is None or encode(found.finding) is not None
            assert isinstance(found.facts.loadable, bool)
            assert found.sha256 == known.sha256


def test_dependencies_that_are_damaged_are_missed(with_companion: Path):
    tried(with_companion)
    sha256, _, text = ScanCache.of_process()._libraries.get(str(with_companion))
    for wrong in WRONG:
        cache = ScanCache.of_process()
        cache._libraries.put(str(with_companion), sha256, json.dumps(wrong), text)
        found = cache.recall(str(with_companion))
        assert found is None or wrong == []


def test_seeing_comes_before_probing(plugin: Path):
    """What is hashed first and changed before the probe is not remembered as what was probed."""
    cache = ScanCache.of_process()
    seen = see(str(plugin))
    write_library(plugin, exports=("SE_InitPlugin",))
    found = look_into(cache, plugin)
    assert seen is not None
    assert found is not None

    assert not cache.remember(found._replace(seen=seen))


# -- libraries that are no plugins ---------------------------------------------------------------
