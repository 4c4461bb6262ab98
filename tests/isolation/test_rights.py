"""What a worker gives up: tried by code of ours that has given the same up."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess

import pytest

from modular_tf.isolation import rights
from modular_tf.isolation.landlock import landlock_version
from modular_tf.isolation.rights import Profile, profile_of, rights_here

_FILES_AND_NETWORK = 4
_SIGNALS = 6
_MACHINES = ("x86_64", "aarch64")

_BEGIN = """
import errno, os, signal, socket, sys, threading
from modular_tf.isolation.kernel_calls import system_call
from modular_tf.isolation.rights import Profile, give_up_rights, limit_reach, _machines

def refused(step, *numbers):
    try:
        step()
    except OSError as error:
        assert error.errno in (numbers or (errno.EPERM,)), error
    else:
        raise AssertionError("it was not refused")

def number(name):
    return _machines()[os.uname().machine]["refused"][name]

"""


@pytest.fixture
def run_limited(run_python):
    """Run code with `taken`, what it has given up, for a profile."""

    def run(profile, code, *arguments):
        text = f"{_BEGIN}taken = [*give_up_rights(), *limit_reach(Profile{tuple(profile)!r}, ())]\n"
        return run_python(text + code, *arguments)

    return run


needs_filter = pytest.mark.skipif(
    platform.machine() not in _MACHINES or bool(rights_here()[rights.CALLS]),
    reason="no filter of system calls here",
)
needs_landlock = pytest.mark.skipif(
    landlock_version() < _FILES_AND_NETWORK, reason="no Landlock with files and network here"
)


@needs_filter
def test_calls_that_no_plugin_needs_are_refused(run_limited):
    code = """
assert "filtered system calls" in taken, taken
for name in ("ptrace", "mount", "bpf", "setns", "keyctl", "perf_event_open", "io_uring_setup"):
    refused(lambda: system_call(number(name)))
numbers = _machines()[os.uname().machine]
CLONE_NEWUSER, CLONE_FS = 0x10000000, 0x200
refused(lambda: system_call(numbers["unshare"], CLONE_NEWUSER))
refused(lambda: system_call(numbers["clone"], CLONE_NEWUSER | signal.SIGCHLD))
refused(lambda: system_call(numbers["clone3"], 0, 0), errno.ENOSYS)
"""
    run_limited(Profile(), code)


@needs_filter
def test_what_workers_and_plugins_do_goes_on(run_limited):
    code = """
numbers = _machines()[os.uname().machine]
done = []

def own_directory():
    system_call(numbers["unshare"], 0x200)
    os.chdir("/")
    done.append(os.getcwd())

before = os.getcwd()
thread = threading.Thread(target=own_directory)
thread.start()
thread.join()
assert (done, os.getcwd()) == (["/"], before)
pid = os.fork()
if pid == 0:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
import subprocess
assert subprocess.run(["/bin/echo", "x"], capture_output=True).stdout == b"x\\n"
socket.socket(socket.AF_INET).close()
a, b = socket.socketpair()
"""
    run_limited(Profile(), code)


@needs_filter
def test_nothing_can_gain_privileges_or_be_traced(run_limited):
    code = """
status = open("/proc/self/status").read().split()
said = {name: status[status.index(f"{name}:") + 1] for name in ("NoNewPrivs", "Seccomp")}
assert said == {"NoNewPrivs": "1", "Seccomp": "2"}, said
from modular_tf.isolation.kernel_calls import prctl
PR_GET_DUMPABLE = 3
assert prctl(PR_GET_DUMPABLE) == 0
import resource
assert resource.getrlimit(resource.RLIMIT_CORE)[1] <= 1
"""
    run_limited(Profile(), code)


@needs_landlock
def test_a_local_plugin_has_no_network(run_limited):
    code = """
assert "no network" in taken, taken
refused(lambda: socket.socket(socket.AF_INET), errno.EPERM, errno.EACCES)
refused(lambda: socket.socket(socket.AF_INET6), errno.EPERM, errno.EACCES)
socket.socketpair()[0].close()
open(sys.argv[0] if os.path.exists(sys.argv[0]) else "/etc/passwd").close()
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


@pytest.mark.skipif(landlock_version() < _SIGNALS, reason="no Landlock with signals here")
def test_no_signal_reaches_other_processes(run_limited):
    code = """
refused(lambda: os.kill(os.getppid(), 0), errno.EPERM)
os.kill(os.getpid(), 0)
"""
    run_limited(Profile(), code)


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
    assert {"/home/me/.aws", "/usr", str(tmp_path / "certificates"), "/opt/hadoop"} <= {
        *remote.read
    }
    assert str(tmp_path) not in remote.read
    assert {"/my/tmp", "/data"} <= {*remote.write}
    assert "/home/me/.config" in profile_of(["mine"], [], environment).read

    assert profile_of(["", "file"], [], environment) == Profile(network=False)
    named = profile_of([""], ["/data"], environment)
    assert (named.files, named.write) == (True, ("/data",))


def test_numbers_of_system_calls_are_known_for_each_machine():
    machines = rights._machines()
    assert set(machines) == set(_MACHINES)
    only_there = {"iopl", "ioperm"}  # no other machine has these
    refused = {name: set(numbers["refused"]) for name, numbers in machines.items()}
    assert refused["x86_64"] - refused["aarch64"] == only_there
    assert refused["aarch64"] <= refused["x86_64"]
    for numbers in machines.values():
        assert len(set(numbers["refused"].values())) == len(numbers["refused"])


@pytest.mark.skipif(platform.machine() not in _MACHINES, reason="headers of another machine")
def test_numbers_are_those_of_the_kernels_headers(tmp_path):
    known = rights._machines()[platform.machine()]
    named = ("clone", "clone3", "unshare", "socket", "seccomp")
    told = {**known["refused"], **{name: known[name] for name in named}}
    lines = "\n".join(f"number_of_{name} = __NR_{name}" for name in told)
    source = tmp_path / "numbers.c"
    source.write_text(f"#include <asm/unistd.h>\n{lines}\n")
    command = [*shlex.split(os.environ.get("CC", "cc")), "-E", "-P", str(source)]
    found = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    numbers = dict(line.split(" = ") for line in found.splitlines() if " = " in line)
    assert {name.removeprefix("number_of_"): int(n) for name, n in numbers.items()} == told
