"""Functions that end as a whole, whatever a signal handler does to who waits for them."""

from __future__ import annotations

import contextvars
import signal
import threading

import pytest

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.concurrency.threads import LastingWork, Work, start_thread, uninterrupted
from modular_tf.errors import NotFoundError, ResourceExhaustedError
from modular_tf.events.event_log import deliver

PATIENCE_S = 60.0  # what nobody needs
MAIN = threading.main_thread()


@pytest.fixture
def handle():
    """Have the main thread handle a signal now; a test's own handler."""
    before = signal.getsignal(signal.SIGALRM)

    def arrange(function):
        signal.signal(signal.SIGALRM, lambda *_: function())

    yield arrange
    signal.signal(signal.SIGALRM, before)


def send():
    signal.pthread_kill(MAIN.ident, signal.SIGALRM)


def interrupt():
    raise KeyboardInterrupt


def test_it_returns_and_raises_as_the_function_does():
    @uninterrupted
    def half(number):
        if number % 2:
            raise NotFoundError("no half")
        return number // 2

    assert half(4) == 2
    with pytest.raises(NotFoundError, match="no half"):
        half(3)


def test_an_interrupt_ends_the_wait_and_the_work_comes_to_its_end(handle):
    may_end, told = threading.Event(), threading.Event()
    done = []

    @uninterrupted
    def work():
        deliver(told.set)
        send()
        may_end.wait(PATIENCE_S)
        done.append(threading.current_thread())

    handle(interrupt)
    with pytest.raises(KeyboardInterrupt):
        work()

    assert done == []
    assert not told.is_set()
    may_end.set()
    assert told.wait(PATIENCE_S)  # by the thread that has done the work
    assert done != [MAIN]


def test_a_signal_handler_may_wait_for_the_same_lock(handle):
    lock, order = ForkLock(), []

    @uninterrupted
    def work(name, then=lambda: None):
        with lock:
            then()
            order.append(name)

    handle(lambda: work("handler"))
    work("main", send)

    assert order == ["main", "handler"]


def test_who_has_a_lock_of_the_package_does_the_work_itself():
    lock = ForkLock()

    @uninterrupted
    def work():
        return threading.current_thread()

    with lock:
        assert work() is MAIN
    assert work() is not MAIN


def test_what_it_calls_of_users_has_the_thread_and_the_context_of_the_caller():
    variable = contextvars.ContextVar("variable")
    told = []

    @uninterrupted
    def work():
        deliver(lambda: told.append((threading.current_thread(), variable.get())))
        return variable.get()

    variable.set("of the caller")

    assert work() == "of the caller"
    assert told == [(MAIN, "of the caller")]


def test_a_child_that_a_signal_handler_forks_does_the_work_anew(run_forked):
    run_forked(
        """
        import os, signal, threading
        from modular_tf.concurrency.fork_lock import ForkLock
        from modular_tf.concurrency.threads import Work, uninterrupted

        lock, parent, children = ForkLock(), os.getpid(), []

        @uninterrupted
        def work():
            with lock:
                if os.getpid() == parent:
                    signal.pthread_kill(threading.main_thread().ident, signal.SIGALRM)
                    while not children:
                        pass
                return os.getpid()

        def fork(*_):
            pid = os.fork()
            children.append(pid)

        signal.signal(signal.SIGALRM, fork)
        assert work() == os.getpid()
        if not children[0]:
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 0
        """
    )


def test_a_child_that_is_forked_when_the_work_has_just_ended_does_not_wait_for_it():
    """The thread that was about to wake the one that waits stayed in the parent."""
    work = Work(int, "work", daemon=True)
    assert work.outcome() == 0
    waiting = threading.Lock()
    waiting.acquire()
    work._waiting.append(waiting)

    work.after_fork_in_child()

    assert not waiting.locked()


def test_an_error_is_raised_for_the_first_that_waits_and_no_other_one_for_the_next():
    def fail():
        raise NotFoundError("not there")

    work = Work(fail, "work", daemon=True)
    with pytest.raises(NotFoundError, match="not there"):
        work.outcome()
    assert work.outcome() is None


@pytest.mark.parametrize("how", ["no thread left", "no memory left"])
def test_where_no_thread_can_be_had_the_caller_does_the_work(how, thread_starts):
    thread_starts.fail(how, "worker")
    with pytest.raises(ResourceExhaustedError, match="'worker' could not be started"):
        start_thread(threading.Thread(target=print, name="worker"))

    thread_starts.fail(how)
    assert uninterrupted(threading.current_thread)() is MAIN
    assert thread_starts.has_failed


def test_lasting_work_is_not_begun_anew_where_a_signal_handler_raises_an_exception(handle):
    may_end, calls, ended = threading.Event(), [], []

    def time_out():
        raise TimeoutError

    def work():
        calls.append(threading.current_thread())
        if len(calls) == 1:
            send()
        may_end.wait(5)  # Python may not notice the signal before it waits
        ended.append(threading.current_thread())

    handle(time_out)
    lasting = LastingWork()
    with pytest.raises(TimeoutError):
        lasting.run(work, "work")
    threading.Timer(0.1, may_end.set).start()  # for who begins it anew too
    lasting.run(work, "work")
    assert ended == calls
    assert len(calls) == 1
