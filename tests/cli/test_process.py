"""The command as a process: its streams, its exit status, its speed-minded imports."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from modular_tf.cli.process import terminate_as_interrupt

COMMAND = [sys.executable, "-m", "modular_tf"]


def test_python_m_and_the_installed_command_are_the_same(mtf_process):
    installed = Path(sys.executable).with_name("modular-tf")
    by_script = subprocess.run([installed, "schemes"], capture_output=True, check=True)
    by_module, bare = mtf_process("schemes"), mtf_process()

    assert (by_module.code, by_module.out) == (0, by_script.stdout)
    assert bare.code == 2
    assert "first steps:\n  modular-tf list" in bare.err
    assert mtf_process("devices", "NOBODY").code == 3


def test_the_end_of_the_process_says_nothing():
    """Python 3.14 reports what fails in a finalizer; earlier ones do in their development mode."""
    variables = {**os.environ, "PYTHONDEVMODE": "1"}
    command = [*COMMAND, "--version"]
    said = subprocess.run(command, env=variables, capture_output=True, text=True, check=True)

    assert said.stdout.startswith("modular-tf ")
    assert said.stderr == ""


def test_an_interrupt_writes_nothing_twice(run_forked):
    child = run_forked("""
        import sys
        from contextlib import suppress
        from modular_tf.cli import process

        def interrupt(frame, event, _):
            global left
            if frame.f_code.co_filename != process.__file__:
                return None
            if event == "return":
                left -= 1
                if not left:
                    sys.settrace(None)
                    raise KeyboardInterrupt
            return interrupt

        process.prepare()
        for number in range(1, 12):
            left = number
            with suppress(KeyboardInterrupt):
                sys.settrace(interrupt)
                sys.stdout.buffer.write(b"%d\\n" % number)
                sys.stdout.flush()
            sys.settrace(None)
        sys.stdout.write("end\\n")
        sys.stdout.flush()
    """)

    *numbers, end = child.stdout.split()
    assert end == "end"
    assert len(numbers) == len(set(numbers)) > 3


def test_the_end_of_a_terminal_interrupts_unless_it_is_ignored_as_under_nohup():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminate_as_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
        with pytest.raises(KeyboardInterrupt), terminate_as_interrupt():
            os.kill(os.getpid(), signal.SIGHUP)
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["fs", "cat", "big"], 0, ""),
        (["fs", "rm", "--json", "gone"], 1, "gone"),
        (["fs", "cat", "gone", "big"], 1, "gone"),  # more than a buffer holds
    ],
)
def test_a_reader_that_had_enough_is_no_error_and_hides_none(words, code, said, tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 2**20)
    with subprocess.Popen(
        [*COMMAND, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as child:
        child.stdout.close()
        complaint = child.stderr.read()

    assert child.returncode == code
    assert said in complaint
    assert len(complaint.splitlines()) == code


@pytest.mark.parametrize(
    ("words", "streams", "code", "complaint"),
    [
        (["list"], ">/dev/full", 1, "No space left on device"),
        (["fs", "cat", __file__], ">/dev/full", 1, "No space left on device"),
        (["--help"], ">&-", 1, "Bad file descriptor"),
        (["fs", "cp", __file__, "ram://copy"], "<&- >&-", 0, None),  # writes nothing
    ],
)
def test_output_that_goes_nowhere_is_reported_in_one_line(words, streams, code, complaint):
    child = _through_shell(words, streams)

    said = f"modular-tf: standard output: {complaint}\n" if complaint else ""
    assert (child.returncode, child.stderr) == (code, said)


@pytest.mark.parametrize("complaints", ["2>/dev/full", "2>&-"])
def test_a_complaint_that_nobody_can_read_changes_no_status(complaints):
    child = _through_shell(["fs", "cat", "/no/such/file", __file__], complaints)

    assert child.returncode == 1
    assert child.stdout == Path(__file__).read_text(encoding="utf-8")


def _through_shell(words, redirections):
    """Run a command whose streams a shell redirects; its output is buffered, as users have it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}
    command = ["sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment)  # noqa: PLW1510


def on_terminal(*words, start=COMMAND):
    """Run a command on a terminal of its own; return what appears there and the exit code."""
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "200"}
    child = subprocess.Popen([*start, *words], stdin=slave, stdout=slave, stderr=slave, env=env)
    os.close(slave)
    seen = b""
    while piece := _read(master):
        seen += piece
    os.close(master)
    return seen.decode(), child.wait()


def _read(master):
    try:
        return os.read(master, 2**16)
    except OSError:  # how a terminal says that nobody is left on the other side
        return b""


def test_a_person_gets_a_table_with_headers_and_below_it_reasons_and_warnings(fixture_plugin):
    refused, warned = map(str, map(fixture_plugin, ("no-init", "filesystem-api")))
    seen, code = on_terminal("list", "--plugin", refused, "--plugin", warned)
    more, _ = on_terminal("list", "--plugin", warned, "-v", "--log", "off")

    assert code == 0
    assert "NAME" in seen.splitlines()[0]
    assert "SERVES" in seen.splitlines()[0]
    assert "ram_filesystem" in seen
    assert "\t" not in seen
    assert re.search(rf"\({refused}\)\r\n  rejected: .* \[LD-010\] ", seen)
    assert "1 warning; `modular-tf list -v` shows more" in seen
    assert re.search(rf"\({warned}\)\r\n  warning: .* \[", more)
    assert "shows more" not in more


_PREPARED = """
import sys
from modular_tf.cli import process
process.prepare()
print(sys.stdout.line_buffering)
"""


def test_a_terminal_and_an_unbuffered_python_get_each_line_at_once(run_python):
    by_pipe = [run_python(_PREPARED, env={"PYTHONUNBUFFERED": text}).stdout for text in ("", "1")]
    on_screen, _ = on_terminal("-c", _PREPARED, start=[sys.executable])

    assert [*by_pipe, on_screen] == ["False\n", "True\n", "True\r\n"]


def test_what_is_not_needed_is_not_imported(run_python):
    run_python(
        """
        import sys
        from modular_tf.cli.main import run

        def loaded(*names):
            return {name for name in sys.modules if name.startswith(names)}

        assert run(["fs", "cp", "--help"]) == 0
        assert not loaded("modular_tf.service.default", "modular_tf.native._core")
        assert run(["list", "--json"]) == run(["fs", "ls", "/"]) == 0
        slow = ("structlog", "rich", "fsspec", "numpy", "pluggy", "importlib_metadata",
                "platformdirs", "asyncio", "modular_tf.gfile", "modular_tf.fsspec",
                "modular_tf.kernel", "modular_tf.cli.kernels")
        assert not loaded(*slow), loaded(*slow)
        """
    )


def test_a_list_of_known_plugins_loads_no_native_core(tmp_path):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MODULAR_TF_")}
    for kind in ("CACHE", "STATE"):
        environment[f"XDG_{kind}_HOME"] = str(tmp_path)
    command = [sys.executable, "-v", "-m", "modular_tf", "list"]
    for _ in range(3):  # what has just been written is not believed yet
        time.sleep(0.1)
        listed = subprocess.run(
            command, capture_output=True, text=True, check=True, env=environment, cwd=tmp_path
        )

    assert "ram_filesystem" in listed.stdout
    assert "import 'modular_tf.service.service'" in listed.stderr
    assert "import 'modular_tf.native._core'" not in listed.stderr


def test_without_proc_each_plugin_is_listed_with_the_remedy(tmp_path):
    script = 'mount -t tmpfs none /proc && "$0" -m modular_tf list'
    ended = subprocess.run(
        ["unshare", "-Urm", "sh", "-c", script, sys.executable],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=True,
    )

    lines = ended.stdout.splitlines()
    assert len(lines) == 3
    assert all("/proc/self/fd does not exist [LD-114] Mount /proc" in line for line in lines)
