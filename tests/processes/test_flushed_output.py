"""Standard output of the C library after what plugins have printed was written out."""

import signal
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from modular_tf.native.ffi import ffi
from modular_tf.native.library import process_symbol
from modular_tf.processes.child import flush_output
from tests.stress.moments import InterruptError

TRIES = 200  # of which an interrupt met the stream locked in each thirty


def can_lock_stdout():
    stream = ffi.cast("void **", process_symbol("stdout"))[0]
    lock, unlock = (
        ffi.cast("int (*)(void *)", process_symbol(name))
        for name in ("ftrylockfile", "funlockfile")
    )
    if lock(stream) != 0:
        return False
    unlock(stream)
    return True


def interrupt(*_):
    raise InterruptError


def test_an_interrupt_leaves_the_stream_to_other_threads():
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for number in range(TRIES):
            with suppress(InterruptError):
                signal.setitimer(signal.ITIMER_REAL, (1 + number % 50) / 1_000_000)
                while True:
                    flush_output()
    finally:
        signal.signal(signal.SIGALRM, before)

    with ThreadPoolExecutor(1) as other:
        assert other.submit(can_lock_stdout).result()
