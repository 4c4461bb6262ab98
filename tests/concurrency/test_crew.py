"""A crew makes calls at once, in the order of its items, and stops when it is left."""

from __future__ import annotations

import itertools
import os
import signal
import threading
import time

import pytest

from modular_tf.concurrency import crew as crew_module
from modular_tf.concurrency.crew import Crew, results_at_once
from modular_tf.errors import CancelledError, FailedPreconditionError, ResourceExhaustedError


@pytest.mark.parametrize("at_once", [1, 16])
@pytest.mark.parametrize("count", [0, 1, 500])
def test_outcomes_come_in_the_order_of_the_items(at_once, count):
    assert results_at_once(lambda n: n * n, range(count), at_once) == [n * n for n in range(count)]


def test_so_many_calls_are_under_way_and_no_more():
    barrier = threading.Barrier(4)  # broken, if fewer than four come
    under_way, most, lock = 0, 0, threading.Lock()

    def call(n):
        nonlocal under_way, most
        with lock:
            under_way += 1
            most = max(most, under_way)
        if n < 4:
            barrier.wait(30)
        time.sleep(0.001)
        with lock:
            under_way -= 1

    results_at_once(call, range(64), 4)

    assert most == 4


@pytest.mark.parametrize("error", [ZeroDivisionError, MemoryError])
def test_an_error_is_of_its_item(error):
    def call(n):
        if n == 0:
            raise error
        return n + 1

    outcomes = list(Crew(3).run(call, [2, 0, 1]))

    assert [o.result for o in outcomes] == [3, None, 2]
    assert [o.item for o in outcomes] == [2, 0, 1]
    with pytest.raises(error):
        outcomes[1].get()


def test_what_the_items_raise_is_raised_after_the_outcomes_before():
    def items():
        yield from range(3)
        raise LookupError("the listing broke off")

    found = []
    with pytest.raises(LookupError, match="broke off"):
        found.extend(outcome.get() for outcome in Crew(2).run(str, items()))

    assert found == ["0", "1", "2"]


@pytest.mark.parametrize("at_once", [1, 4])
def test_few_outcomes_wait_to_be_taken_and_a_run_that_is_left_begins_nothing_more(at_once):
    begun, crew = [], Crew(at_once)
    for outcome in crew.run(begun.append, range(10_000)):
        if outcome.item == 5:
            break
    known = len(begun)
    time.sleep(0.05)

    assert len(begun) == known <= 6 + 4 * at_once
    assert not [t for t in threading.enumerate() if t.name.startswith("modular_tf-call")]
    assert results_at_once(str, [1, 2], at_once) == ["1", "2"]


def test_a_long_call_learns_that_the_rest_was_given_up():
    crew, began, ended = Crew(2), threading.Event(), threading.Event()

    def call(n):
        if n == 0:
            return
        began.set()
        try:
            for _ in range(30_000):
                time.sleep(0.001)
                crew.check()
        except CancelledError:
            ended.set()
            raise

    for _ in crew.run(call, [0, 1, 2]):
        began.wait(30)
        break

    assert ended.wait(5)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_fewer_threads_than_wanted_do_the_work(threads, monkeypatch):
    started, start = [], crew_module.start_thread

    def start_some(thread):
        if len(started) == threads:
            raise ResourceExhaustedError("no more threads")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(crew_module, "start_thread", start_some)

    assert results_at_once(str, range(100), 8) == list(map(str, range(100)))
    assert len(started) == threads


def test_outcomes_come_as_the_calls_end_where_order_does_not_matter():
    others = threading.Event()

    def call(n):
        if n == 0:
            assert others.wait(30)  # for ever, if those behind it had to wait for it
        elif n == 200:
            others.set()
        return n

    results = [outcome.get() for outcome in Crew(2).run(call, range(300), in_order=False)]

    assert sorted(results) == list(range(300))
    assert results.index(0) >= 199


def test_the_waiting_thread_is_called_and_makes_no_call_itself():
    waits = []
    began = threading.Event()

    def call(_):
        while not waits:
            began.wait(0.01)
        return threading.current_thread() is threading.main_thread()

    crew = Crew(1, while_waiting=lambda: waits.append(threading.current_thread()))
    assert [outcome.get() for outcome in crew.run(call, [1])] == [False]
    assert set(waits) == {threading.main_thread()}
    assert not crew.is_working


def test_who_left_a_crew_need_not_wait_for_its_calls_and_may(monkeypatch):
    monkeypatch.setattr(crew_module, "_GRACE_S", 0.0)
    may_end, ended = threading.Event(), []

    def call(n):
        if n:
            may_end.wait(60)
            ended.append(n)

    crew = Crew(2)
    outcomes = crew.run(call, range(2))
    next(outcomes)
    outcomes.close()
    assert not ended
    assert crew.is_working
    threading.Timer(0.05, may_end.set).start()
    crew.wait()
    assert ended == [1]
    assert not crew.is_working
    with pytest.raises(CancelledError):
        next(crew.run(str, range(2)))


def no_thread_is_left(seconds=20):
    """Wait until the threads of all crews have ended; tell if they have."""
    end = time.monotonic() + seconds
    # Python also lists a thread for ever whose start was interrupted before it began.
    while any(t.name.startswith("modular_tf-call") and t.is_alive() for t in threading.enumerate()):
        if time.monotonic() > end:
            return False
        time.sleep(0.005)
    return True


@pytest.fixture
def interrupt_after():
    """Interrupt the main thread after so many seconds, and again each second; 0 for not any more.

    Python drops an exception that is raised in a callback of a weak reference.
    """

    def interrupt(_number, _frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds, 1.0)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


# What Python drops it reports as an exception that nobody could raise.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("in_order", [True, False])
def test_an_interrupt_between_any_two_steps_ends_all_threads(interrupt_after, in_order):
    def iterate(run, seconds):
        interrupt_after(seconds)  # which may be over before the next line
        return all(outcome.error is None for outcome in run)

    for number in range(100):
        run = Crew(4).run(lambda n: n, itertools.count(), in_order=in_order)
        with pytest.raises(KeyboardInterrupt):
            iterate(run, 0.001 + number * 3e-5)
        interrupt_after(0)
        run.close()  # where the interrupt came between two outcomes
        assert no_thread_is_left(), f"after interrupt {number}"


@pytest.mark.parametrize("in_order", [True, False])
def test_no_memory_for_an_outcome_is_an_error_and_no_endless_wait(monkeypatch, in_order):
    outcome = crew_module.Outcome

    def outcome_or_not(item, result, error=None):
        if item == 7:
            raise MemoryError
        return outcome(item, result, error)

    monkeypatch.setattr(crew_module, "Outcome", outcome_or_not)

    with pytest.raises(ResourceExhaustedError, match="make fewer at once"):
        list(Crew(3).run(str, range(50), in_order=in_order))
    assert no_thread_is_left()


def test_a_forked_child_that_goes_on_is_told_that_its_threads_are_missing():
    run = Crew(2).run(lambda n: n and time.sleep(0.3), range(100))
    next(run)
    reads, writes = os.pipe()
    child = os.fork()
    if not child:
        try:
            list(run)
        except FailedPreconditionError as error:
            os.write(writes, str(error).encode())
        finally:
            os._exit(0)
    os.close(writes)
    told = os.read(reads, 1000).decode()
    os.close(reads)
    os.waitpid(child, 0)
    run.close()

    assert "forked" in told
    assert no_thread_is_left()
