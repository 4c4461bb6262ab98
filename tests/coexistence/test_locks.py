"""The package's locks and computed attributes, when signal handlers raise and the process forks."""

from __future__ import annotations

from modular_tf.concurrency.computed_once import computed_once


class Subject:
    calls = 0

    @computed_once
    def value(self):
        self.calls += 1
        if self.calls == 1:
            self.of_another = self.value  # as another thread would ask for it meanwhile
        return object()


def test_each_instance_keeps_the_first_value_that_was_computed():
    one = Subject()

    assert one.value is one.of_another
    assert one.value is one.of_another
    assert one.calls == 2
    assert Subject().value is not one.value


def test_an_interrupt_at_any_moment_leaves_the_lock_free(run_forked):
    """And a signal handler may take the lock that its thread holds."""
    run_forked(
        """
        import random, signal
        from modular_tf.concurrency.fork_lock import ForkLock

        class Interrupt(BaseException):
            pass

        def interrupt(*_):
            raise Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        lock, dice, taken = ForkLock(), random.Random(1), []
        for _ in range(500):
            try:
                signal.setitimer(signal.ITIMER_REAL, dice.uniform(1e-5, 1e-4))
                while True:
                    with lock:
                        with lock:
                            pass
            except Interrupt:
                assert not lock._is_owned()

        def take(*_):
            with lock:
                taken.append(True)

        signal.signal(signal.SIGUSR1, take)
        with lock:
            signal.raise_signal(signal.SIGUSR1)
        assert taken and not lock._is_owned()
        """
    )


def test_an_interrupt_of_work_on_many_files_leaves_no_lock(run_forked):
    run_forked(
        """
        import itertools, random, signal
        from types import SimpleNamespace
        from modular_tf.concurrency.fork_lock import holds_lock
        from modular_tf.filesystem.jobs import Job

        class Interrupt(BaseException):
            pass

        def interrupt(*_):
            raise Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        dice, item = random.Random(1), SimpleNamespace(uri="")
        for _ in range(500):
            job = Job()
            try:
                signal.setitimer(signal.ITIMER_REAL, dice.uniform(1e-5, 1e-3))
                job.run(lambda item: None, itertools.repeat(item, 1000))
                signal.setitimer(signal.ITIMER_REAL, 0)
            except Interrupt:
                assert not holds_lock()
        """
    )


def test_a_child_has_what_its_thread_holds_and_nothing_of_others(run_forked):
    """Neither locks, nor attributes that another thread computes at the fork."""
    run_forked(
        """
        import os, signal, threading
        from modular_tf.concurrency.computed_once import computed_once
        from modular_tf.concurrency.fork_lock import ForkLock

        others, own = ForkLock(), ForkLock()
        held, stop = threading.Barrier(3), threading.Event()

        class Subject:
            @computed_once
            def value(self):
                if threading.current_thread() is not threading.main_thread():
                    held.wait(60)
                    stop.wait(60)
                return 1

        def hold():
            with others:
                held.wait(60)
                stop.wait(60)

        threads = [threading.Thread(target=each) for each in (hold, lambda: Subject().value)]
        for thread in threads:
            thread.start()
        held.wait(60)
        with own:
            pid = os.fork()
            status = 1
            if pid == 0:
                signal.alarm(60)  # ends a child that waits for ever
                if others.acquire(timeout=50) and own._is_owned() and Subject().value == 1:
                    status = 0
        if pid == 0:
            os._exit(status or own._is_owned())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        stop.set()
        for thread in threads:
            thread.join()
        """
    )
