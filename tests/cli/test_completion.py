"""Completion of command lines: what a shell is told, and what real shells make of it."""

import os
import pty
import select
import shutil
import signal
import sys
import time
from pathlib import Path

import pytest

from modular_tf.cli import values
from modular_tf.cli.main import run

BREAKS = " \t\n\"'><=;|&(:"  # where bash parts words
ANSWERS_S = 60
KEYS_EVERY_S = 5
SHELLS = ("bash", "zsh", "fish")


ONE_TREE = ["{tree}/one.txt", "{tree}/s*", "{tree}/sub dir/", "{tree}/sub.txt"]
# Some of the answers to a line.
SOME = {
    "": {"list", "fs", "completion"},
    "f": {"fs"},
    "fs ": {"ls", "du", "head", "tail", "cp"},
    "--json fs l": {"ls"},
    "fs ls -": {"-l", "-R", "--human-readable", "--json", "--plugin"},
    "fs find x --type ": {"f", "d"},
    "completion ": set(SHELLS),
    "inspect ra": {"ram_filesystem"},
    "why ra": {"ram", "ram_filesystem"},
    "ops MatMu": {"MatMul"},
    "fs ls ra": {"ram://"},
    "--plugin-dir ": {"tree/"},
}
# All of them, to a line in a shell.
ALL = {
    ("fs head -n ", "zsh"): [],
    ("zz", "zsh"): [],
    ("--no-bundled fs ls ra", "zsh"): [],  # global options that stand before count
    ("fs ls s3://bucket/", "zsh"): [],  # nobody serves it
    # Paths and URIs end with a slash for directories.
    ("fs ls {tree}/", "zsh"): ONE_TREE,
    ("fs ls file://{tree}/", "zsh"): [f"file://{path}" for path in ONE_TREE],
    ("fs ls tree/.h", "zsh"): ["tree/.hidden"],
    # bash parts words at colons, and has them quoted.
    ("fs ls file://{tree}/s", "bash"): [
        "//{tree}/s\\*",
        "//{tree}/sub\\ dir/",
        "//{tree}/sub.txt",
    ],
    ("quar", "bash"): ["quarantine "],
    ("fs l", "fish"): ["ls\tlist directories"],
    # What is quoted is completed.
    ("fs ls 'tree/sub d", "zsh"): ["tree/sub dir/"],
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """Files and a directory, some with names that cannot be typed."""
    base = tmp_path_factory.mktemp("completion") / "tree"
    (base / "sub dir" / "deep").mkdir(parents=True)
    for name in (b"one.txt", b"sub.txt", b".hidden", b"s\xff", b"s\n", b"s\x1b[2J", b"s*"):
        (base / os.fsdecode(name)).write_bytes(b"")
    return base


def typed(path):
    """Return a path as it stands in a command line."""
    return str(path).replace(" ", "\\ ")


def variables(line, shell):
    """Return by which variables a shell asks how a command line may go on."""
    return {
        "_MODULAR_TF_COMPLETE": shell,
        "COMP_LINE": f"modular-tf {line}",
        "COMP_WORDBREAKS": BREAKS,
    }


@pytest.fixture
def answers(tree, monkeypatch, capsys):
    """Return how a command line in a shell may go on."""
    monkeypatch.chdir(tree.parent)
    # Waits longer for names than people have patience: the machine may do much else at once.
    monkeypatch.setattr(values, "_WAIT_S", ANSWERS_S)

    def answer(line, shell):
        for name, value in variables(line.replace("{tree}", typed(tree)), shell).items():
            monkeypatch.setenv(name, value)
        assert run() == 0
        return capsys.readouterr().out.splitlines()

    return answer


@pytest.mark.parametrize("line", SOME)
def test_verbs_options_and_names_are_completed(answers, line):
    assert SOME[line] <= set(answers(line, "zsh"))


@pytest.mark.parametrize(("line", "shell"), ALL)
def test_nothing_else_is_offered_and_it_is_as_the_shell_wants_it(answers, tree, line, shell):
    shown = typed(tree) if shell == "bash" else str(tree)
    expected = [answer.replace("{tree}", shown) for answer in ALL[line, shell]]

    assert answers(line, shell) == expected


@pytest.mark.parametrize(
    "code",
    [
        f"values._WAIT_S = 0.2; values._in_store = lambda *_: time.sleep({ANSWERS_S})",
        f"values._WAIT_S = {ANSWERS_S}; values._in_store = None",
    ],
    ids=["does not answer", "goes wrong"],
)
def test_a_store_that_does_not_answer_ends_with_no_names_and_no_message(run_python, code):
    started = time.monotonic()
    run_main = "from modular_tf.__main__ import main; sys.exit(main())"
    child = run_python(
        f"import sys, time; from modular_tf.cli import values; {code}; {run_main}",
        env=variables("fs ls s3://bucket/", "zsh"),
    )

    assert (child.stdout, child.stderr) == ("", "")
    assert time.monotonic() - started < ANSWERS_S / 2


# -- real shells ------------------------------------------------------------------------------

STARTS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(modular-tf completion bash)"'),
    "zsh": (
        ["zsh", "-f", "-i"],
        # One that scripts/fetch_system_libraries has fetched does not find its modules.
        (
            'm=${"$(command -v zsh)":h}/../zsh-modules;'
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
        while text.encode() not in self.seen.replace(b"\a", b""):
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


@pytest.fixture(
    params=["bash", *(pytest.param(name, marks=pytest.mark.beyond_core) for name in SHELLS[1:])]
)
def shell(request, tree):
    command, setup = STARTS[request.param]
    assert shutil.which(command[0]), f"no {command[0]}: see scripts/fetch_system_libraries"
    shell = InteractiveShell(command, tree.parent)
    shell.type(f"{setup}\n")
    shell.type("echo is set''up\n")
    assert shell.shows("is setup")
    yield shell
    shell.end()


def test_the_tab_key_completes(shell, tree):
    uri = f"file://{typed(tree)}"
    for keys, line in [
        ("modular-tf quar", "modular-tf quarantine "),
        ("modular-tf fs mk", "modular-tf fs mkdir "),
        ("modular-tf fs mkdir tree/on", "modular-tf fs mkdir tree/one.txt"),
        (f"modular-tf fs ls {uri}/on", f"modular-tf fs ls {uri}/one.txt"),
        (f"modular-tf fs ls {uri}/sub\\ dir/d", f"{uri}/sub\\ dir/deep/"),
    ]:
        shell.type(f"{keys}\t")
        assert shell.shows(line, keys="\t"), shell.seen
        shell.type("\x15")  # which empties the line
