"""What kills or stops all processes of its user reaches those of its own trial only.

Each test has process numbers of its own itself, so that nothing beyond it can be reached.
"""

import shutil
import tempfile
from pathlib import Path

import pytest

# As an ordinary user: the superuser becomes one that has no processes yet.
_TRY_AS_ORDINARY_USER = """
    import json, os, socket, sys
    from modular_tf.codec import encode
    from modular_tf.first_contact.zygote import _warm_up, watch_over_trials
    from modular_tf.processes import seclusion
    from modular_tf.first_contact.finding import Limits
    from modular_tf.loading.task import Task
    from modular_tf.native.c_library import prctl

    def become_ordinary():
        if os.geteuid() == 0:
            os.setgroups([])
            os.setresgid(54329, 54329, 54329)
            os.setresuid(54329, 54329, 54329)
            prctl(4, 1)  # PR_SET_DUMPABLE

    def attempt():
        _warm_up()  # what it imports may lie where ordinary users may not read
        become_ordinary()
        assert seclusion.can_be_secluded()
        ours, theirs = socket.socketpair()
        if os.fork() == 0:
            ours.close()
            seclusion.run_secluded(lambda: watch_over_trials(theirs.fileno(), Limits()))
        theirs.close()
        task = Task("x", sys.argv[1])
        ours.sendall(json.dumps(encode(task)).encode() + b"\\n")
        print("answered:", ours.makefile().readline(), flush=True)

    seclusion.run_secluded(attempt)
"""


@pytest.fixture
def public(misdeed):
    """Return a copy of a plugin with a misdeed where all users find it."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)

        def copy(deed):
            return str(shutil.copy(misdeed(deed), folder))

        yield copy


@pytest.mark.parametrize("deed", ["KILL_ALL", "STOP_ALL"])
def test_an_ordinary_users_trial_reaches_nobody_else(deed, public, run_forked):
    assert run_forked(_TRY_AS_ORDINARY_USER, public(deed)).stdout == "answered: \n"


def test_an_ordinary_user_has_its_numbers_and_no_rights_there(public, run_forked):
    said = run_forked(_TRY_AS_ORDINARY_USER, public("NOTHING")).stdout

    assert '"incident": null' in said
    assert '"notes": []' in said


# The first process of a PID namespace, which nothing in there ends, starts an application again
# and again that the system does not let seclude trials.
_WITHOUT_SECLUSION = """
    import os, subprocess, sys
    from modular_tf.processes import seclusion

    APPLICATION = '''
    import sys
    from modular_tf.processes import zygote_process
    from modular_tf.service.service import PluginService
    zygote_process._SECLUDES = False
    with PluginService(plugin_paths=sys.argv[1:], bundled=False) as service:
        print(*(f"{p.name}: {p.state} {p.reason.rule if p.reason else None}"
                for p in service.load().plugins), sep=", ")
    '''

    seclusion.enter_namespaces()
    if (pid := os.fork()) != 0:
        sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
    seclusion.show_own_processes()
    for _ in range(2):
        command = [sys.executable, "-c", APPLICATION, *sys.argv[1:]]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
        print(done.returncode, done.stdout.strip(), flush=True)
    os._exit(0)
"""


def test_the_next_start_knows_who_killed_everybody_where_nothing_is_secluded(misdeed, run_forked):
    files = [misdeed("NOTHING"), misdeed("KILL_ALL"), misdeed("NOTHING", kind="filesystem")]
    first, second = run_forked(_WITHOUT_SECLUSION, *files).stdout.splitlines()

    assert first == "-9 "
    assert second == (
        "0 nothing_at_init: loaded None, kill_all_at_init: quarantined LD-070,"
        " nothing_at_init_of_filesystem: loaded None"
    )


def test_who_stops_everybody_is_told_and_the_application_goes_on(misdeed, run_forked):
    files = [misdeed("STOP_ALL"), misdeed("NOTHING")]
    for line in run_forked(_WITHOUT_SECLUSION, *files).stdout.splitlines():
        assert line == "0 stop_all_at_init: quarantined LD-060, nothing_at_init: loaded None"
