"""Which descriptors are left after interrupts, and after errors."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from modular_tf.concurrency.owned_file import open_owned

# Each is an expression of `path`, a file, and of `spare`, a path where nothing is.
WORK = {
    "open_owned": "open_owned(path, os.O_RDONLY)",
    "owned": "owned(partial(os.memfd_create, 'memory'))",
    "owned_pipe": "owned_pipe()",
    "see": "see(path)",
    "of_same_file": "of_same_file(path, see(path).identity, sha256_of)",
    "OpenedFile": "OpenedFile(path).close()",
    "in_memory": "in_memory(b'bytes', 'memory').close()",
    "PrivateDirectory.read": "PrivateDirectory(ours).read('file', 100)",
    "PrivateDirectory.create": "PrivateDirectory(ours).create(os.urandom(8).hex(), b'bytes')",
    "PrivateDirectory.make": "PrivateDirectory(ours + os.urandom(8).hex()).create('f', b'bytes')",
    "PrivateDirectory.open_for_lock": "with PrivateDirectory(ours).open_for_lock('l'): pass",
    "write_output": "write_output(spare, b'text')",
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_an_interrupt_at_any_step_leaves_nothing_open(run_python, tmp_path, work):
    run_python(
        f"""
        import os, sys, warnings
        from functools import partial
        from modular_tf.discovery.file_identity import of_same_file, see, sha256_of
        from modular_tf.loading.private_copy import OpenedFile
        from modular_tf.loading.private_copy import in_memory
        from modular_tf.concurrency.owned_file import open_owned, owned, owned_pipe
        from modular_tf.service.output_file import write_output
        from modular_tf.service.storage.private_directory import PrivateDirectory
        from tests.stress.moments import InterruptError, MomentOfStep

        def interrupt():
            raise InterruptError

        def count():
            return len(os.listdir("/proc/self/fd"))

        warnings.simplefilter("ignore", ResourceWarning)  # dropping is what closes here
        path, spare, ours = sys.argv[1:]
        {work}  # the first time modules are imported
        before = count()
        step, is_met = 0, True
        while is_met:
            step += 1
            is_met = False
            try:
                with MomentOfStep(interrupt, step):
                    {work}
            except InterruptError:
                is_met = True
            assert count() == before, step
        assert step > 3, step
        """,
        __file__,
        str(tmp_path / "spare"),
        str(tmp_path / "ours"),
    )


def test_a_directory_is_refused_and_not_left_open(tmp_path):
    before = _open_now()
    with pytest.raises(IsADirectoryError):
        open_owned(tmp_path, os.O_RDONLY)
    with pytest.raises(IsADirectoryError):
        open_owned(tmp_path, os.O_WRONLY)  # by the system itself
    assert _open_now() == before


def _open_now() -> list[Path]:
    return sorted(Path("/proc/self/fd").iterdir())
