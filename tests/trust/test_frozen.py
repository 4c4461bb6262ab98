"""LD-080 and LD-081: where plugins are frozen, only what is in the lock file is opened."""

import hashlib
import json
import shutil

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.lock import LockedFile, LockedHook, LockedPlugin, LockFile
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.discovery.conftest import make_candidate
from tests.trust.conftest import (
    STRANGER,
    assert_refused,
    judge,
    judge_with_companions,
)


def locked(path):
    data = path.read_bytes()
    return LockedFile(path.name, hashlib.sha256(data).hexdigest(), len(data))


@pytest.fixture
def lock(home, library, companion):
    """Return the path of a lock file with one plugin and its companion."""
    path = home / "modular-tf.lock"
    plugins = [LockedPlugin("x", locked(library), companions=(locked(companion),))]
    path.write_text(LockFile.of(plugins).text())
    return path


@pytest.fixture
def frozen(lock):
    return TrustPolicy(frozen=True, lock=str(lock))


def test_locked_bytes_are_accepted_wherever_they_lie_and_no_others(library, lock, frozen, tmp_path):
    verdict = judge(library, frozen)
    assert (verdict.accepted, verdict.rule) == (True, "LD-080")
    assert str(lock) in verdict.message
    assert verdict.checked[0].sha256 == locked(library).sha256
    assert judge(shutil.copy(library, tmp_path / "other.so"), frozen).accepted

    library.write_bytes(b"other bytes")
    verdict = judge(library, frozen)
    assert_refused(verdict, "LD-080", locked(library).sha256, lock)
    assert "modular-tf lock" in verdict.refused.remedy
    bundled = make_candidate(library, Source.BUNDLED)
    assert_refused(TrustJudge(frozen).judge(bundled), "LD-080")
    assert judge(library, TrustPolicy(lock=str(lock))).accepted  # not frozen


def test_companions_are_locked_as_such(library, companion, frozen):
    verdict = judge_with_companions(library, companion, policy=frozen)
    assert verdict.accepted
    assert [seen.path for seen in verdict.checked] == [str(library), str(companion)]
    assert_refused(judge_with_companions(library, library, policy=frozen), "LD-080")

    companion.write_bytes(b"other code")
    verdict = judge_with_companions(library, companion, policy=frozen)
    assert_refused(verdict, "LD-080", "as a companion of 'x'")


def test_the_rules_of_owners_hold_for_locked_plugins_and_the_lock_file(
    library, lock, frozen, give_to
):
    lock.chmod(0o666)
    assert_refused(judge(library, frozen), "LD-081", f"{lock} has mode 0666")
    lock.chmod(0o444)
    assert judge(library, frozen).accepted

    give_to(library, user=STRANGER)
    assert_refused(judge(library, frozen), "LD-075")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(None, "No such file", id="gone"),
        pytest.param("", "no lock file", id="empty"),
        pytest.param("{}", "modular_tf_lock", id="another file"),
        pytest.param('{"modular_tf_lock": 2, "plugins": []}', "modular_tf_lock", id="version"),
        pytest.param("[" * 100_000, "no lock file", id="deep"),
        pytest.param("\xff", "no lock file", id="binary"),
    ],
)
def test_without_a_lock_file_that_can_be_read_all_are_refused(text, words, library, lock, frozen):
    if text is None:
        lock.unlink()
    else:
        lock.write_bytes(text.encode("latin-1"))

    assert_refused(judge(library, frozen), "LD-081", words)


# -- the file ------------------------------------------------------------------------------------


def plugin(name, number, **facts):
    return LockedPlugin(name, LockedFile(f"lib{name}.so", f"{number:064x}", number), **facts)


def test_a_lock_file_is_read_as_it_was_written():
    plugins = [
        plugin("b", 2, distribution="spam 1.2", schemes=("z", "a"), device_types=("GPU",)),
        plugin("a", 1, companions=(LockedFile("libc\udcff.so", f"{7:064x}", 7),)),
    ]
    hooks = [LockedHook("spam 1.2: x", "spam:X", LockedFile("spam", f"{9:064x}", 9))]
    written = LockFile.of(plugins, hooks)

    read = LockFile.parse(written.text())

    assert read.text() == written.text() == LockFile.of(plugins[::-1], hooks).text()
    assert read.hooks == written.hooks
    assert [entry.name for entry in read.plugins.values()] == ["a", "b"]
    assert read.plugins[f"{1:064x}"].companions[0].file == "libc\udcff.so"
    assert read.plugins[f"{2:064x}"].schemes == ("a", "z")


def test_the_same_bytes_in_two_places_are_one_plugin_with_the_companions_of_both():
    c, d = LockedFile("libc.so", f"{7:064x}", 7), LockedFile("libd.so", f"{8:064x}", 8)

    lock = LockFile.of([plugin("a", 1, companions=(d,)), plugin("b", 1, companions=(c,))])

    assert [(e.name, e.companions) for e in lock.plugins.values()] == [("a", (c, d))]


@pytest.mark.parametrize(
    "change",
    [
        {"sha256": "xyz"},
        {"size": True},
        {"schemes": "s3"},
        {"companions": [{}]},
        {"distribution": 1},
    ],
    ids=str,
)
def test_a_damaged_entry_is_refused(change):
    values = json.loads(LockFile.of([plugin("a", 1)]).text())
    values["plugins"][0].update(change)

    with pytest.raises(ValueError, match="expected"):
        LockFile.parse(json.dumps(values))
