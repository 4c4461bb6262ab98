"""What a worker gives up: tried by code of ours that has given the same up."""

from __future__ import annotations

import pytest

from modular_tf.isolation.rights import Profile, landlock_version, profile_of

_FILES_AND_NETWORK = 4
_SIGNALS = 6

_BEGIN = """
import errno, os, resource, signal, socket, subprocess, sys
from modular_tf.isolation.rights import Profile, give_up_rights, limit_reach
from modular_tf.native.c_library import prctl

PR_GET_DUMPABLE = 3

def refused(step, number):
    try:
        step()
    except OSError as error:
        assert error.errno == number, error
    else:
        raise AssertionError("it was not refused")

"""


@pytest.fixture
def run_limited(run_forked):
    """Run code with `taken`, what it has given up, for a profile."""

    def run(profile, code):
        text = f"{_BEGIN}taken = [*give_up_rights(), *limit_reach(Profile{tuple(profile)!r}, ())]\n"
        return run_forked(text + code)

    return run


needs_landlock = pytest.mark.skipif(
    landlock_version() < _FILES_AND_NETWORK, reason="no Landlock with files and network here"
)


def test_what_workers_and_plugins_do_goes_on_without_privileges(run_limited):
    code = """
pid = os.fork()
if pid == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
assert subprocess.run(["/bin/echo", "x"], capture_output=True).stdout == b"x\\n"
socket.socket(socket.AF_INET).close()
a, b = socket.socketpair()
status = open("/proc/self/status").read().split()
assert status[status.index("NoNewPrivs:") + 1] == "1", status
assert prctl(PR_GET_DUMPABLE) == 0
assert resource.getrlimit(resource.RLIMIT_CORE)[1] <= 1
"""
    if landlock_version() >= _SIGNALS:
        code += "refused(lambda: os.kill(os.getppid(), 0), errno.EPERM)\nos.kill(os.getpid(), 0)\n"
    run_limited(Profile(), code)


@needs_landlock
def test_a_local_plugin_has_no_network(run_limited):
    code = """
assert "no network" in taken, taken
for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
    with socket.socket(family) as made:
        refused(lambda: made.connect((address, 9)), errno.EACCES)
        refused(lambda: made.bind((address, 0)), errno.EACCES)
socket.socketpair()[0].close()
open("/etc/passwd").close()
"""
    run_limited(Profile(network=False), code)


@needs_landlock
def test_only_named_files_can_be_reached(run_limited, tmp_path):
    for name in ("read", "write", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("x")
    profile = Profile(True, True, (str(tmp_path / "read"),), (str(tmp_path / "write"),))
    code = f"""
os.chdir({str(tmp_path)!r})
assert "named files only" in taken, taken
assert open("read/file").read() == open("write/file").read() == "x"
refused(lambda: open("read/file", "w"), errno.EACCES)
refused(lambda: open("read/new", "w"), errno.EACCES)
refused(lambda: os.unlink("read/file"), errno.EACCES)
refused(lambda: open("other/file"), errno.EACCES)
refused(lambda: os.listdir("other"), errno.EACCES)
open("write/new", "w").close()
os.rename("write/new", "write/renamed")
os.truncate("write/renamed", 10)
os.unlink("write/renamed")
"""
    run_limited(profile, code)


def test_the_profile_follows_the_schemes(tmp_path):
    (tmp_path / "certificates").write_text("")
    environment = {
        "HOME": "/home/me",
        "TMPDIR": "/my/tmp",
        "CURL_CA_BUNDLE": str(tmp_path / "certificates"),
        "WORK": str(tmp_path),
        "HADOOP_HOME": "/opt/hadoop",
    }
    remote = profile_of(["s3"], ["/data"], environment)
    assert (remote.network, remote.files) == (True, True)
    read = {"/home/me/.aws", "/usr", str(tmp_path / "certificates"), "/opt/hadoop"}
    assert read <= {*remote.read}
    assert str(tmp_path) not in remote.read
    assert {"/my/tmp", "/data"} <= {*remote.write}
    assert "/home/me/.config" in profile_of(["mine"], [], environment).read

    assert profile_of(["", "file"], [], environment) == Profile(network=False)
    named = profile_of([""], ["/data"], environment)
    assert (named.files, named.write) == (True, ("/data",))
