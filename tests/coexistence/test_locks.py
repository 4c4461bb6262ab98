"""The package's locks, when signal handlers raise and when the process forks."""

from __future__ import annotations


def test_an_interrupt_at_any_moment_leaves_the_lock_free(run_python):
    run_python(
        """
        import random, signal
        from modular_tf.concurrency.fork_lock import ForkLock

        class Interrupt(BaseException):
            pass

        def interrupt(*_):
            raise Interrupt

        signal.signal(signal.SIGALRM, interrupt)
        lock, dice = ForkLock(), random.Random(1)
        for _ in range(3000):
            try:
                signal.setitimer(signal.ITIMER_REAL, dice.uniform(1e-5, 1e-4))
                while True:
                    with lock:
                        with lock:
                            pass
            except Interrupt:
                assert not lock._is_owned()
        """
    )


def test_a_signal_handler_may_take_the_lock_that_its_thread_holds(run_python):
    run_python(
        """
        import signal
        from modular_tf.concurrency.fork_lock import ForkLock

        lock, taken = ForkLock(), []

        def take(*_):
            with lock:
                taken.append(True)

        signal.signal(signal.SIGUSR1, take)
        with lock:
            signal.raise_signal(signal.SIGUSR1)
        assert taken and not lock._is_owned()
        """
    )


def test_a_child_has_what_its_thread_holds_and_nothing_of_others(run_python):
    run_python(
        """
        import os, threading
        from modular_tf.concurrency.fork_lock import ForkLock

        others, own = ForkLock(), ForkLock()
        held, stop = threading.Event(), threading.Event()

        def hold():
            with others:
                held.set()
                stop.wait(60)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(60)
        with own:
            pid = os.fork()
            status = 1
            if pid == 0 and others.acquire(timeout=60) and own._is_owned():
                status = 0
        if pid == 0:
            os._exit(status or own._is_owned())
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        stop.set()
        holder.join()
        """
    )
