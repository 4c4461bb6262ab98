"""Attributes that are computed at their first use, also in a child forked in the middle of that."""

from __future__ import annotations

from modular_tf.concurrency.computed_once import computed_once


class Subject:
    def __init__(self):
        self.calls = 0

    @computed_once
    def value(self):
        """Return a value."""
        self.calls += 1
        return object()


def test_the_value_is_computed_once_for_each_instance():
    one, other = Subject(), Subject()

    assert one.value is one.value
    assert one.value is not other.value
    assert (one.calls, other.calls) == (1, 1)


def test_the_class_shows_the_docstring():
    assert Subject.value.__doc__ == "Return a value."


def test_a_child_that_is_forked_while_a_thread_computes_can_compute(run_python):
    run_python("""
        import os, signal, threading
        from modular_tf.concurrency.computed_once import computed_once

        under_way, done = threading.Event(), threading.Event()

        class Subject:
            @computed_once
            def value(self):
                if threading.current_thread() is not threading.main_thread():
                    under_way.set()
                    done.wait()
                return 1

        thread = threading.Thread(target=lambda: Subject().value)
        thread.start()
        under_way.wait()
        if (child := os.fork()) == 0:
            signal.alarm(20)  # ends a child that waits for ever
            os._exit(0 if Subject().value == 1 else 1)
        assert os.waitpid(child, 0)[1] == 0
        done.set()
        thread.join()
    """)
