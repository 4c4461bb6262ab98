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


def test_a_reader_that_had_enough_is_no_error(tmp_path):
    (tmp_path / "big").write_bytes(b"x" * 2**20)
    with subprocess.Popen(
        [*COMMAND, "fs", "cat", str(tmp_path / "big")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:
        assert child.stdout.read(10) == b"x" * 10
        child.stdout.close()
        said = child.stderr.read()

    assert said == b""
    assert child.returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ["rm", "--json", "gone"],
        ["cat", "gone", "one"],  # what is more than a buffer holds is written before the end
        ["ls", "gone", "many"],
    ],
    ids=["rm", "cat", "ls"],
)
def test_nor_a_success_where_something_failed(words, tmp_path):
    (tmp_path / "one").write_bytes(b"x" * 2**17)
    (tmp_path / "many").mkdir()
    for number in range(200):
        (tmp_path / "many" / f"{number:0100}").touch()
    reading, writing = os.pipe()
    os.close(reading)
    try:
        child = subprocess.run(
            [*COMMAND, "fs", *words],
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)

    assert "gone" in child.stderr
    assert "Traceback" not in child.stderr
    assert "Exception ignored" not in child.stderr
    assert child.returncode == 1


_BROKEN = """
class Broken:
    def stat(self, uri):
        raise FileNotFoundError(uri)

    def new_writable_file(self, uri):
        return self

    def append(self, data):
        raise BrokenPipeError(32, "Broken pipe")

    def close(self):
        pass
"""


def test_a_pipe_that_a_filesystem_loses_is_a_failure(mtf, tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text(_BROKEN)
    (tmp_path / "config.toml").write_text('[filesystems.lossy]\nobject = "broken:Broken"\n')
    (tmp_path / "one").write_bytes(b"content")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(tmp_path / "config.toml"))
    ended = mtf("fs", "cp", tmp_path / "one", "lossy://h/one")

    assert "Broken pipe" in ended.err
    assert ended.code == 1


@pytest.mark.parametrize(
    ("words", "output", "message"),
    [
        (["list"], ">/dev/full", "No space left on device"),
        (["schemes", "--json"], ">&-", "Bad file descriptor"),
        (["fs", "cat", __file__], ">/dev/full", "No space left on device"),
        (["--help"], ">&-", "Bad file descriptor"),
    ],
)
def test_output_that_goes_nowhere_is_reported_in_one_line(words, output, message):
    child = _through_shell(words, output)

    assert child.stderr == f"modular-tf: standard output: {message}\n"
    assert child.returncode == 1


def test_a_command_without_output_needs_no_standard_output(tmp_path):
    target = tmp_path / "copy"
    child = _through_shell(["fs", "cp", __file__, str(target)], "<&- >&-")

    assert (child.returncode, child.stderr) == (0, "")
    assert target.read_bytes() == Path(__file__).read_bytes()


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


@pytest.mark.parametrize(
    ("variables", "by_line"), [({"PYTHONUNBUFFERED": ""}, False), ({"PYTHONUNBUFFERED": "1"}, True)]
)
def test_a_pipe_gets_each_line_at_once_if_python_is_unbuffered(run_python, variables, by_line):
    assert run_python(_PREPARED, env=variables).stdout == f"{by_line}\n"


def test_a_terminal_gets_each_line_at_once():
    seen, code = on_terminal("-c", _PREPARED, start=[sys.executable])

    assert (seen.split(), code) == (["True"], 0)


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


def test_where_files_may_not_grow_the_limit_is_named(tmp_path):
    script = 'ulimit -f 0; "$0" -m modular_tf list | cat'
    ended = subprocess.run(
        ["sh", "-c", script, sys.executable],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=dict(os.environ, HOME=str(tmp_path), XDG_CACHE_HOME=str(tmp_path)),
        check=True,
    )

    assert ended.stdout == ""
    assert "File too large; raise the limit (`ulimit -f`)" in ended.stderr


def test_the_package_itself_imports_nothing_so_that_an_early_interrupt_is_silent():
    # What finds the package of an editable install imports a few modules itself.
    find = "import sys, importlib.util; importlib.util.find_spec('modular_tf')"
    script = f"{find}; b = set(sys.modules); import modular_tf; print(*set(sys.modules) - b)"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )

    assert set(ended.stdout.split()) <= {"modular_tf", "__future__"}, ended.stdout
    assert "modular_tf" in ended.stdout.split(), ended.stderr
