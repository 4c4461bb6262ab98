"""The turn: of several processes, services and threads, one finds something out."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from modular_tf.service.storage.private_directory import PrivateDirectory, Turn

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

# Tests of other areas may have imported JAX into this process, which warns at each fork. These
# children run few lines.
pytestmark = pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")


def _fail_on_wait() -> None:
    raise AssertionError("waited")


@pytest.fixture
def turn(tmp_path) -> Turn:
    return Turn(PrivateDirectory(str(tmp_path / "own")))


def found_out(turn: Turn, *, timeout_s=0.0, check=_fail_on_wait, known=()) -> list[str]:
    """Find something out; return what."""
    found: list[str] = []
    turn.find_out(
        ["a"],
        unknown=lambda items: [item for item in items if item not in known],
        find_out=lambda items, _: found.extend(items),
        timeout_s=timeout_s,
        check=check,
    )
    return found


@contextmanager
def taken(turn: Turn) -> Iterator[Callable[[], None]]:
    """Let another thread have the turn for the time of a block; yields what tells progress."""
    begun, ends, told = threading.Event(), threading.Event(), []

    def find_out(_, tell_progress):
        told.append(tell_progress)
        begun.set()
        assert ends.wait(60)

    def run() -> None:
        turn.find_out(["x"], unknown=list, find_out=find_out, timeout_s=0, check=_fail_on_wait)

    thread = threading.Thread(target=run)
    thread.start()
    assert begun.wait(60)
    try:
        yield told[0]
    finally:
        ends.set()
        thread.join()


def is_free(turn: Turn) -> bool:
    """Tell whether another thread need not wait."""
    found: list[bool] = []

    def ask() -> None:
        try:
            found.append(bool(found_out(turn)))
        except AssertionError:
            found.append(False)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return found[0]


def test_one_has_the_turn(turn):
    assert is_free(turn)
    with taken(turn):
        assert not is_free(turn)
    assert is_free(turn)


def test_the_others_read_what_the_first_has_stored(turn):
    known: list[str] = []
    waits = threading.Event()
    found: list[list[str]] = []
    with taken(turn):
        thread = threading.Thread(
            target=lambda: found.append(found_out(turn, timeout_s=60, check=waits.set, known=known))
        )
        thread.start()
        assert waits.wait(60)
        known.append("a")
    thread.join()
    assert found == [[]]


def test_a_thread_never_waits_for_its_own_turn(turn):
    """As a signal handler that loads plugins in the middle of somebody's first start."""
    inner: list[list[str]] = []

    def find_out(items, _):
        inner.append(found_out(turn))
        inner.append([] if is_free(turn) else ["still taken"])

    turn.find_out(["b"], unknown=list, find_out=find_out, timeout_s=0, check=_fail_on_wait)
    assert inner == [["a"], ["still taken"]]


@pytest.mark.parametrize("place", [None, "/proc/nothing"])
def test_without_a_directory_nobody_waits(place):
    turn = Turn(PrivateDirectory(place))
    with taken(turn):
        assert is_free(turn)


def test_without_locks_nobody_waits(turn, monkeypatch):
    def flock(fd: int, operation: int) -> None:
        raise OSError(37, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)
    with taken(turn):
        assert is_free(turn)


def test_a_turn_ends_with_what_raises(turn):
    def fail(*_):
        raise KeyError

    with pytest.raises(KeyError):
        turn.find_out(["a"], unknown=list, find_out=fail, timeout_s=0, check=_fail_on_wait)
    assert is_free(turn)


def test_an_interrupt_at_any_step_ends_the_turn(run_python, tmp_path):
    """Also while the exception of the interrupt is kept, and with it all that its frames hold."""
    run_python(
        """
        import sys, threading
        from modular_tf.service.storage.private_directory import PrivateDirectory
        from modular_tf.service.storage.private_directory import PrivateDirectory, Turn
        from tests.storage.test_turn import is_free
        from tests.stress.moments import InterruptError, MomentOfStep

        def interrupt():
            raise InterruptError

        def work():
            turn.find_out(["a"], unknown=list, find_out=lambda _, tell: tell(), timeout_s=0,
                          check=interrupt)

        turn = Turn(PrivateDirectory(sys.argv[1]))
        work()  # the first time modules are imported
        raised, step, is_met = [], 0, True
        while is_met:
            step += 1
            is_met = False
            try:
                with MomentOfStep(interrupt, step):
                    work()
            except InterruptError as error:
                raised.append(error)
                is_met = True
            assert is_free(turn), step
        assert step > 30, step
        """,
        str(tmp_path / "ours"),
    )


def test_a_forked_child_neither_ends_nor_keeps_the_turn_of_its_parent(turn):
    reads, writes = os.pipe()
    children: list[int] = []

    def find_out(_, tell_progress):
        if (child := os.fork()) == 0:
            os.close(writes)
            tell_progress()
            try:
                os.read(reads, 1)  # lives longer than the turn
            finally:
                os._exit(0)
        children.append(child)
        assert not is_free(turn)

    turn.find_out(["a"], unknown=list, find_out=find_out, timeout_s=0, check=_fail_on_wait)
    assert is_free(turn)
    os.close(writes)
    os.close(reads)
    os.waitpid(children[0], 0)


def test_a_forked_child_that_leaves_the_work_leaves_the_parent_its_turn(turn):
    parent = os.getpid()

    def find_out(*_):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            assert not is_free(turn)

    turn.find_out(["a"], unknown=list, find_out=find_out, timeout_s=0, check=_fail_on_wait)
    if os.getpid() != parent:
        os._exit(0)


def test_the_turn_of_a_killed_process_is_free(turn):
    reads, writes = os.pipe()
    if (child := os.fork()) == 0:

        def find_out(*_):
            os.write(writes, b"x")
            signal.pause()

        turn.find_out(["a"], unknown=list, find_out=find_out, timeout_s=0, check=_fail_on_wait)
    os.read(reads, 1)
    assert not is_free(turn)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert is_free(turn)


def test_a_wait_goes_on_as_long_as_an_owner_makes_progress(turn):
    """The owner tells of it whenever the timeout would be over, until it has been asked often."""
    asked: list[None] = []
    with taken(turn) as tell_progress:

        def check() -> None:
            asked.append(None)
            tell_progress()

        waits = threading.Thread(
            target=found_out, args=(turn,), kwargs={"timeout_s": 1.0, "check": check}
        )
        waits.start()
        while len(asked) < 100:  # as many polls take longer than the timeout
            waits.join(0.01)
            assert waits.is_alive()
    waits.join()


def test_who_waits_for_an_owner_without_progress_works_alone(turn):
    with taken(turn):
        assert found_out(turn, timeout_s=0.05, check=lambda: None) == ["a"]


def test_what_checks_the_wait_can_end_it(turn):
    with taken(turn), pytest.raises(AssertionError, match="waited"):
        found_out(turn, timeout_s=600)
