"""What kills or stops all processes of its user reaches those of its own trial only.

Each test has process numbers of its own itself, so that nothing beyond it can be reached.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

import pytest

# As an ordinary user: the superuser becomes one that has no processes yet.
_TRY_AS_ORDINARY_USER = """
    import json, os, socket, sys
    from modular_tf.first_contact import seclusion, warden
    from modular_tf.first_contact.limits import Limits
    from modular_tf.first_contact.task import Task
    from modular_tf.native.library import process_symbol
    from modular_tf.native.ffi import ffi

    def become_ordinary():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(54329, 54329, 54329)
            os.setresuid(54329, 54329, 54329)
            prctl = ffi.cast("int (*)(int, unsigned long, ...)", process_symbol("prctl"))
            prctl(4, ffi.cast("unsigned long", 1))  # PR_SET_DUMPABLE

    def attempt():
        become_ordinary()
        assert seclusion.can_be_secluded()
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            ours.close()
            seclusion.run_secluded(lambda: warden.watch_over_trials(theirs.fileno(), Limits()))
        theirs.close()
        task = Task("x", sys.argv[1])
        ours.sendall(json.dumps(task.as_dict()).encode() + b"\\n")
        print("answered:", ours.makefile().readline(), flush=True)

    seclusion.run_secluded(attempt)
"""


@pytest.fixture
def public(misdeed):
    """Return a copy of a plugin with a misdeed where all users find it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)

        def copy(deed: str) -> str:
            return str(shutil.copy(misdeed(deed), folder))

        yield copy


@pytest.mark.parametrize("deed", ["KILL_ALL", "STOP_ALL"])
def test_an_ordinary_users_trial_reaches_nobody_else(deed, public, run_python):
    assert run_python(_TRY_AS_ORDINARY_USER, public(deed)).stdout == "answered: \n"


def test_an_ordinary_user_has_its_numbers_and_no_rights_there(public, run_python):
    said = run_python(_TRY_AS_ORDINARY_USER, public("NOTHING")).stdout

    assert '"incident": null' in said
    assert '"notes": []' in said


_LOOK = """
    import os
    from modular_tf.first_contact import seclusion

    def look():
        print(os.getuid(), os.getgid(), seclusion._capabilities(), os.getpid(), flush=True)

    def attempt():
        become_ordinary()
        print(os.getuid(), os.getgid(), seclusion._capabilities(), flush=True)
        pid = os.fork()
        if pid == 0:
            seclusion.run_secluded(look)
        os.waitpid(pid, 0)

    seclusion.run_secluded(attempt)
"""


def test_a_secluded_ordinary_user_keeps_its_numbers_and_gains_no_right(run_python):
    ordinary = _TRY_AS_ORDINARY_USER[: _TRY_AS_ORDINARY_USER.index("    def attempt")]
    outside, inside = run_python(ordinary + _LOOK).stdout.splitlines()

    assert inside == f"{outside} 2"
    assert outside.endswith(" 0")
    assert os.getuid() != 0 or not outside.startswith("0 ")
