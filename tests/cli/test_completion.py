"""Completion of command lines: what a shell is told, and what real shells make of it."""

from __future__ import annotations

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

BREAKS = " \t\n\"'><=;|&(:"  # where bash parts words
ANSWERS_S = 60
KEYS_EVERY_S = 5
SHELLS = ("bash", "zsh", "fish")


# A machine that does much else at once may need longer than people have patience.
PATIENT = f"from modular_tf.cli import values; values._WAIT_S = {ANSWERS_S}"


@pytest.fixture
def tree(tmp_path):
    """Files and a directory, some with names that cannot be typed."""
    base = tmp_path / "tree"
    (base / "sub dir" / "deep").mkdir(parents=True)
    for name in (b"one.txt", b"sub.txt", b".hidden", b"s\xff", b"s\n", b"s\x1b[2J", b"s*"):
        (base / os.fsdecode(name)).write_bytes(b"")
    return base


@pytest.fixture
def complete(tmp_path):
    """Ask as a shell does how a command line may go on."""

    def asked(line, *, shell="zsh", code=PATIENT):
        environment = {
            **os.environ,
            "_MODULAR_TF_COMPLETE": shell,
            "COMP_LINE": f"modular-tf {line}",
            "COMP_WORDBREAKS": BREAKS,
        }
        subject = f"import sys; {code}; from modular_tf.__main__ import main; sys.exit(main())"
        child = subprocess.run(
            [sys.executable, "-c", subject], cwd=tmp_path, env=environment, capture_output=True,
            timeout=ANSWERS_S, check=False,
        )  # fmt: skip
        assert (child.returncode, child.stderr) == (0, b"")
        return child.stdout.decode().splitlines()

    return asked


@pytest.mark.parametrize(
    ("line", "some"),
    [
        ("", {"list", "fs", "completion"}),
        ("f", {"fs"}),
        ("fs ", {"ls", "du", "head", "tail", "cp"}),
        ("--json fs l", {"ls"}),
        ("fs ls -", {"-l", "-R", "--human-readable", "--json", "--plugin"}),
        ("quarantine r", {"retry"}),
        ("fs find x --type ", {"f", "d"}),
        ("completion ", set(SHELLS)),
        ("inspect ra", {"ram_filesystem"}),
        ("why ra", {"ram", "ram_filesystem"}),
        ("ops MatMu", {"MatMul"}),
        ("kernels --op MatMu", {"MatMul"}),
        ("fs ls ra", {"ram://"}),
        ("fs ls ram:/", {"ram://"}),
        ("--plugin tr", {"tree/"}),
        ("--plugin-dir ", {"tree/"}),
        ("fs ls tr", {"tree/"}),
    ],
)
def test_verbs_options_and_names(complete, tree, line, some):
    assert some <= set(complete(line))


@pytest.mark.parametrize("line", ["fs head -n ", "fs ls none/", "zz"])
def test_nothing_where_nothing_is_known(complete, tree, line):
    assert complete(line) == []


def test_paths_and_uris_end_with_a_slash_for_directories(complete, tree):
    for start in (str(tree), f"file://{tree}"):
        assert complete(f"fs ls {start}/") == [f"{start}/one.txt", f"{start}/s*", *(
            [f"{start}/sub dir/", f"{start}/sub.txt"])]  # fmt: skip
    assert complete(f"fs cp x file://{tree}/o") == [f"file://{tree}/one.txt"]
    assert complete("fs ls tree/.h") == ["tree/.hidden"]


def test_for_bash_words_are_parted_at_colons_and_quoted(complete, tree):
    assert complete(f"fs ls file://{tree}/sub", shell="bash") == [
        f"//{tree}/sub\\ dir/",
        f"//{tree}/sub.txt",
    ]
    assert complete(f"fs ls file://{tree}/s", shell="bash")[0] == f"//{tree}/s\\*"
    assert complete("quar", shell="bash") == ["quarantine "]


def test_fish_gets_descriptions(complete):
    assert complete("fs l", shell="fish") == ["ls\tlist directories"]


@pytest.mark.parametrize("line", ["fs ls 'tree/sub d", 'fs ls "tree/sub d', "fs ls tree/sub\\ d"])
def test_what_is_quoted_is_completed(complete, tree, line):
    assert complete(line) == ["tree/sub dir/"]


def test_global_options_that_stand_before_count(complete, tree):
    assert complete("--no-bundled fs ls ra") == []


def test_a_store_that_does_not_answer_ends_with_no_names_and_no_message(complete, tree):
    slow = (
        "import time; from modular_tf.cli import values;"
        f" values._WAIT_S = 0.2; values._in_store = lambda *_: time.sleep({ANSWERS_S})"
    )
    started = time.monotonic()

    assert complete("fs ls s3://bucket/", code=slow) == []
    assert time.monotonic() - started < ANSWERS_S / 2


def test_what_goes_wrong_is_no_message(complete, tree):
    broken = f"{PATIENT}; values._in_store = None"

    assert complete("fs ls s3://bucket/", code=broken) == []
    assert complete("fs ls s3://bucket/") == []


# -- real shells ------------------------------------------------------------------------------

STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(modular-tf completion bash)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        # One that scripts/fetch_system_libraries has fetched does not find its modules.
        (
            "m=${$(command -v zsh):h}/../zsh-modules;"
            " [ -d $m ] && module_path=($m) && zmodload zsh/zle && setopt zle;"
            ' autoload -Uz compinit; compinit -u -D; eval "$(modular-tf completion zsh)"'
        ),
    ),
    "fish": (["fish", "--no-config", "-i"], "modular-tf completion fish | source"),
}


class InteractiveShell:
    """A shell on a terminal of its own."""

    def __init__(self, command, folder):
        self.pid, self.terminal = pty.fork()
        if not self.pid:
            os.chdir(folder)
            path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
            environment = {
                **os.environ,
                "PATH": path,
                "TERM": "dumb",
                "COLUMNS": "200",
                "PS1": "$ ",
            }
            os.execvpe(command[0], command, environment)
        self.seen = b""

    def type(self, keys):
        self.seen = b""
        os.write(self.terminal, keys.encode())

    def shows(self, text, keys=""):
        """Wait until the terminal shows a text, typing these keys now and then; tell if it does."""
        end = time.monotonic() + ANSWERS_S
        while text.encode() not in self.seen:
            if time.monotonic() > end:
                return False
            if select.select([self.terminal], [], [], KEYS_EVERY_S)[0]:
                self.seen += os.read(self.terminal, 2**16)
            else:
                os.write(self.terminal, keys.encode())
        return True

    def end(self):
        os.close(self.terminal)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


@pytest.fixture(params=SHELLS)
def shell(request, tree):
    command, setup = STARTS[request.param]
    assert shutil.which(command[0]), f"no {command[0]}: see scripts/fetch_system_libraries"
    shell = InteractiveShell(command, tree.parent)
    shell.type(f"{setup}\n")
    shell.type("echo is set''up\n")
    assert shell.shows("is setup")
    yield shell
    shell.end()


@pytest.mark.parametrize(
    ("keys", "line"),
    [
        ("modular-tf quar\t", "modular-tf quarantine "),
        ("modular-tf fs mk\ttree/on\t", "modular-tf fs mkdir tree/one.txt"),
        ("modular-tf fs ls file://{tree}/on\t", "modular-tf fs ls file://{tree}/one.txt"),
        ("modular-tf fs ls file://{tree}/sub\\ dir/d\t", "file://{tree}/sub\\ dir/deep/"),
    ],
    ids=["verb", "verb and path", "uri", "quoted"],
)
def test_the_tab_key_completes(shell, tree, keys, line):
    shell.type(keys.format(tree=tree))

    assert shell.shows(line.format(tree=tree), keys="\t"), shell.seen
