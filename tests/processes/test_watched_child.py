"""A child that ends while its watcher looks at it."""

# The watcher's first look comes before the end, its next one after it.
_ENDED_BETWEEN_TWO_LOOKS = """
    import os
    import signal
    from modular_tf.processes import watched_child
    from modular_tf.processes.ending import ChildEnding

    def live(ends, parent):
        os.kill(os.getpid(), signal.SIGSEGV)

    nobody, _ = os.pipe()
    ending = ChildEnding()
    child = watched_child.WatchedChild(live, nobody, ending, seconds=60.0)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    child.has_ended = lambda: False
    print(child.is_over())
    del child.has_ended
    print(child.is_over())
    child.end(())
    print(ending.in_words())
"""

_STOPPED = """
    import os
    import signal
    from modular_tf.processes.watched_child import stop_of

    child = os.fork()
    if child == 0:
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    os.waitid(os.P_PID, child, os.WSTOPPED | os.WNOWAIT)
    print(stop_of(child) == (signal.SIGSTOP, False))
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    print(stop_of(child))
"""


def test_an_end_between_two_looks_is_reported(run_forked):
    told = run_forked(_ENDED_BETWEEN_TWO_LOOKS).stdout.splitlines()

    assert told[:2] == ["False", "True"]
    assert told[2].startswith("crashed with SIGSEGV")


def test_a_stopped_child_differs_from_one_that_has_ended(run_forked):
    assert run_forked(_STOPPED).stdout.split() == ["True", "None"]
