"""Which descriptors are left after interrupts, and after errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modular_tf.concurrency.owned_file import open_owned


def test_an_interrupt_at_any_step_leaves_nothing_open(run_forked, tmp_path):
    run_forked(
        """
        import os, sys, warnings
        from functools import partial
        from modular_tf.discovery.file_identity import of_same_file, see, sha256_of
        from modular_tf.loading.private_copy import OpenedFile, in_memory
        from modular_tf.concurrency.owned_file import open_owned, owned, owned_pipe
        from modular_tf.service.output_file import write_output
        from modular_tf.service.storage.private_directory import PrivateDirectory, Turn
        from tests.storage.test_turn import find_out
        from tests.stress.moments import InterruptError, MomentOfStep

        path, spare, ours = sys.argv[1:]  # a file, and where nothing is
        own = lambda: PrivateDirectory(ours)
        name = lambda: os.urandom(8).hex()

        def lock():
            with own().open_for_lock("lock"):
                pass

        def interrupt():
            raise InterruptError

        turn = Turn(own())
        WORK = {
            "open_owned": lambda: open_owned(path, os.O_RDONLY),
            "owned": lambda: owned(partial(os.memfd_create, "memory")),
            "owned_pipe": lambda: owned_pipe(),
            "see": lambda: see(path),
            "of_same_file": lambda: of_same_file(path, see(path).identity, sha256_of),
            "OpenedFile": lambda: OpenedFile(path).close(),
            "in_memory": lambda: in_memory(b"bytes", "memory").close(),
            "read": lambda: own().read("file", 100),
            "create": lambda: own().create(name(), b"bytes"),
            "make": lambda: PrivateDirectory(ours + name()).create("file", b"bytes"),
            "open_for_lock": lock,
            "write_output": lambda: write_output(spare, b"text"),
            # Where an interrupt does not end the turn, the next one is interrupted while it waits.
            "turn": lambda: find_out(turn, lambda _, report: report(), check=interrupt),
        }

        def count():
            return len(os.listdir("/proc/self/fd"))

        warnings.simplefilter("ignore", ResourceWarning)  # dropping is what closes here
        for what, work in WORK.items():
            work()  # the first time modules are imported
            before = count()
            step, is_met = 0, True
            while is_met:
                step += 1
                is_met = False
                try:
                    with MomentOfStep(interrupt, step):
                        work()
                except InterruptError:
                    is_met = True
                assert count() == before, (what, step)
                assert step < 2000, what
            assert step > 3, (what, step)
        """,
        __file__,
        str(tmp_path / "spare"),
        str(tmp_path / "ours"),
    )


def test_a_directory_is_refused_and_not_left_open(tmp_path):
    before = sorted(Path("/proc/self/fd").iterdir())
    for flags in (os.O_RDONLY, os.O_WRONLY):  # the latter is refused by the system itself
        with pytest.raises(IsADirectoryError):
            open_owned(tmp_path, flags)
    assert sorted(Path("/proc/self/fd").iterdir()) == before
