"""Claims: of several processes, services and threads, who finds something out."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from modular_tf.service.kept.claims import Claimed, Claims, find_out_once, release
from modular_tf.service.kept.storage.private_directory import PrivateDirectory

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Tests of other areas may have imported JAX into this process, which warns at each fork. These
# children run few lines.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")


def _fail_on_wait() -> None:
    raise AssertionError("waited")


@pytest.fixture
def directory(tmp_path) -> PrivateDirectory:
    return PrivateDirectory(str(tmp_path / "own"))


@pytest.fixture
def claims(directory) -> Claims:
    return Claims(directory, "subject")


@contextmanager
def claimed(claims: Claims, keys: Sequence[str]) -> Iterator[Claimed]:
    """Claim keys for the time of a block."""
    with claims.open(keys) as file:
        try:
            yield claims.claim(file, keys)
        finally:
            release(file)


def _claimed_elsewhere(claims: Claims, *keys: str) -> set[str]:
    """Return what another thread could claim."""
    found: list[set[str]] = []

    def ask() -> None:
        with claimed(claims, keys) as mine:
            found.append(set(mine.keys))

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


def test_what_one_has_claimed_nobody_else_can(claims):
    with claimed(claims, ["a", "b"]) as mine:
        assert mine.keys == {"a", "b"}
        assert _claimed_elsewhere(claims, "a", "b", "c") == {"c"}
    assert _claimed_elsewhere(claims, "a", "b", "c") == {"a", "b", "c"}


def test_of_many_keys_a_part_is_claimed_at_a_time(claims, directory):
    """The kernel compares each lock with all others: time would grow with the square."""
    many = [f"key {number}" for number in range(2500)]
    with claimed(claims, ["key 7"]):
        assert _claimed_elsewhere(claims, *many) == {*many[:7], *many[8:1001]}
    with claimed(claims, many) as mine:
        assert mine.keys == set(many[:1000])
        assert _claimed_elsewhere(claims, *many[500:]) == set(many[1000:2000])
        assert _claimed_elsewhere(claims, "another") == {"another"}
        assert _claimed_elsewhere(Claims(directory, "other"), many[0]) == {many[0]}


def test_many_things_are_found_out_in_parts_and_each_once(claims):
    many = [f"key {number}" for number in range(2500)]
    found: list[str] = []
    sizes = []

    def find_out(keys, tell_progress):
        sizes.append(len(keys))
        found.extend(keys)

    find_out_once(
        claims,
        many,
        str,
        unknown=lambda keys: [key for key in keys if key not in found],
        find_out=find_out,
        patience_s=0.0,
        check=_fail_on_wait,
    )

    assert found == many
    assert sizes == [1000, 1000, 500]


def test_a_copy_of_the_file_that_a_child_may_have_keeps_no_claim(claims):
    with claims.open(["a"]) as file:
        claims.claim(file, ["a"])
        copy = os.dup(file.fileno())
        release(file)

    try:
        assert _claimed_elsewhere(claims, "a") == {"a"}
    finally:
        os.close(copy)


def test_keys_of_another_subject_are_others(claims, directory):
    with claimed(claims, ["a"]):
        assert _claimed_elsewhere(Claims(directory, "other"), "a") == {"a"}


def test_the_empty_key_is_claimed_by_everybody(claims):
    with claimed(claims, ["", "a"]):
        assert _claimed_elsewhere(claims, "", "a") == {""}


def test_a_thread_never_waits_for_its_own_claims(claims):
    """As a signal handler that loads plugins in the middle of somebody's first start."""
    tried: list[str] = []
    with claimed(claims, ["a"]):
        find_out_once(
            claims,
            ["a"],
            str,
            unknown=list,
            find_out=lambda items, _: tried.extend(items),
            patience_s=0,
            check=_fail_on_wait,
        )
        assert _claimed_elsewhere(claims, "a") == set()
    assert tried == ["a"]


@pytest.mark.parametrize("place", [None, "/proc/nothing"])
def test_without_a_directory_each_has_all(place):
    claims = Claims(PrivateDirectory(place), "subject")
    with claimed(claims, ["a"]) as mine:
        assert mine.keys == {"a"}
        assert _claimed_elsewhere(claims, "a") == {"a"}
        assert claims.wait("a", 0, _fail_on_wait)


def test_a_claim_ends_with_what_raises(claims):
    with pytest.raises(KeyError), claimed(claims, ["a"]):
        raise KeyError
    assert _claimed_elsewhere(claims, "a") == {"a"}


WORK = {
    "claims": "find_out_once(claims, ['a'], str, unknown=list, find_out=find_out, **waiting)",
    "lock": "save()",
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_an_interrupt_at_any_step_ends_claims_and_locks(run_python, tmp_path, work):
    """Also while the exception of the interrupt is kept, and with it all that its frames hold."""
    run_python(
        f"""
        import fcntl, os, sys
        from modular_tf.service.kept.claims import Claims, find_out_once
        from modular_tf.service.kept.storage.private_directory import PrivateDirectory
        from modular_tf.service.kept.storage.record_file import RecordFile
        from tests.stress.moments import InterruptError, MomentOfStep

        def interrupt():
            raise InterruptError

        def save():
            records.put("key", "value")
            records.save()

        def find_out(items, tell_progress):
            tell_progress()

        def is_free(other):  # claims and lock, for anybody
            with other.open(["a"]) as file:
                claimed = other.claim(file, ["a"])
                is_owner = file is not None and claimed.keys == {{"a"}}
            fd = os.open(os.path.join(ours, "lock"), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            finally:
                os.close(fd)
            return is_owner

        ours = sys.argv[1]
        directory = PrivateDirectory(ours)
        directory.create("file", b"")
        claims, records = Claims(directory, "subject"), RecordFile(directory, "records", "title")
        waiting = dict(patience_s=0, check=interrupt)
        {work}  # the first time modules are imported
        raised, step, is_met = [], 0, True
        while is_met:
            step += 1
            is_met = False
            try:
                with MomentOfStep(interrupt, step):
                    {work}
            except InterruptError as error:
                raised.append(error)
                is_met = True
            assert is_free(claims), step
        assert step > 30, step
        """,
        str(tmp_path / "ours"),
    )


def test_a_forked_child_neither_ends_nor_keeps_the_claims_of_its_parent(claims):
    reads, writes = os.pipe()
    with claimed(claims, ["a"]) as mine:
        if (child := os.fork()) == 0:
            os.close(writes)
            mine.tell_progress()
            try:
                os.read(reads, 1)  # lives longer than the claim
            finally:
                os._exit(0)
        os.close(reads)
        assert _claimed_elsewhere(claims, "a") == set()
    assert _claimed_elsewhere(claims, "a") == {"a"}
    os.close(writes)
    os.waitpid(child, 0)


def test_a_forked_child_that_leaves_the_work_leaves_the_parent_its_claims(claims):
    parent = os.getpid()
    with claimed(claims, ["a"]):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            assert _claimed_elsewhere(claims, "a") == set()
    if os.getpid() != parent:
        os._exit(0)


def test_a_child_that_a_signal_handler_forks_has_all_and_the_parent_keeps_its_claims(
    claims, monkeypatch
):
    parent = os.getpid()
    children: list[int] = []
    real = Claims._flock

    def fork_once(self, kind, key):
        if not children:
            children.append(os.fork())
        return real(self, kind, key)

    monkeypatch.setattr(Claims, "_flock", fork_once)
    try:
        with claimed(claims, ["a", "b"]) as mine:
            if os.getpid() == parent:
                _, status = os.waitpid(children[0], 0)
                assert status == 0
                assert _claimed_elsewhere(claims, "a", "b") == set()
        if os.getpid() != parent:
            os._exit(0 if mine.keys == {"a", "b"} else 1)
    finally:
        if os.getpid() != parent:
            os._exit(2)


def test_the_claims_of_a_killed_process_are_free(claims):
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:
        with claimed(claims, ["a"]):
            os.write(writes, b"x")
            signal.pause()
    os.read(reads, 1)
    assert _claimed_elsewhere(claims, "a") == set()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert claims.wait("a", 0, _fail_on_wait)
    assert _claimed_elsewhere(claims, "a") == {"a"}


def test_a_wait_goes_on_as_long_as_an_owner_makes_progress(claims):
    """The owner tells of it whenever the patience would be over, until it has been asked often."""
    asked: list[None] = []
    patience_s = 1.0

    with claimed(claims, ["a"]) as mine:

        def check() -> None:
            asked.append(None)
            mine.tell_progress()

        waits = threading.Thread(target=claims.wait, args=("a", patience_s, check))
        waits.start()
        while len(asked) < 100:  # as many polls take longer than the patience
            waits.join(0.01)
            assert waits.is_alive()
    waits.join()


def test_a_wait_for_an_owner_without_progress_ends(claims):
    with claimed(claims, ["a"]):
        assert not claims.wait("a", 0.05, lambda: None)


def test_what_checks_the_wait_can_end_it(claims):
    with claimed(claims, ["a"]), pytest.raises(AssertionError, match="waited"):
        claims.wait("a", 600, _fail_on_wait)


def test_what_an_owner_could_not_keep_is_found_out_by_each(claims):
    """It is claimed by one after the other twice; then nobody waits any more."""
    tried: list[str] = []
    waits: list[str] = []

    class Busy(Claims):
        def wait(self, key, patience_s, check):
            waits.append(key)
            return True

    with claimed(claims, ["a"]):
        busy = Busy(claims._directory, "subject")

        def run() -> None:
            find_out_once(
                busy,
                ["a"],
                str,
                unknown=list,
                find_out=lambda items, _: tried.extend(items),
                patience_s=600,
                check=_fail_on_wait,
            )

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    assert (tried, waits) == (["a"], ["a", "a"])
