"""What `run` makes of every way in which a command can end."""

from __future__ import annotations

import pytest

from modular_tf import errors
from modular_tf.cli import frame, main, plugins


@pytest.fixture
def run(monkeypatch):
    """Run an action as a verb, with `verbose` -v given."""

    def run(action, verbose=0):
        monkeypatch.setattr(plugins.schemes, "callback", lambda *_: action())
        return main.run(["schemes", *["-v"] * verbose])

    return run


def raising(error):
    def action():
        raise error

    return action


def test_the_verbs_answer_is_the_exit_code(run):
    assert run(lambda: 3) == 3


def test_a_failed_operation_is_one_line_and_1(run, capsys):
    assert run(raising(errors.NotFoundError("no such scheme: zz"))) == 1
    assert capsys.readouterr().err == "modular-tf: no such scheme: zz\n"


def test_an_error_of_the_system_is_one_line_and_1(run, capsys):
    assert run(raising(PermissionError(13, "Permission denied"))) == 1
    assert capsys.readouterr().err == "modular-tf: Permission denied\n"


def test_our_own_fault_is_70_and_short(run, capsys):
    assert run(raising(ZeroDivisionError("oops"))) == 70
    said = capsys.readouterr().err
    assert "internal error of modular-tf: ZeroDivisionError: oops" in said
    assert "-v" in said
    assert "Traceback" not in said


def test_our_own_fault_has_a_traceback_when_asked_for(run, capsys, monkeypatch):
    monkeypatch.setattr(frame, "set_up_log", lambda *_: None)

    assert run(raising(ZeroDivisionError("oops")), verbose=1) == 70
    assert "Traceback" in capsys.readouterr().err


def test_an_interrupt_is_quiet(run, capsys):
    assert run(raising(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == ""


def test_wrong_usage_is_2():
    assert main.run(["no-such-verb"]) == 2


def test_help_is_0(capsys):
    assert main.run(["--help"]) == 0
    assert "commands:" in capsys.readouterr().out


def test_a_failure_writes_no_control_characters(run, capsys):
    assert run(raising(errors.UnknownError("bad\x1b[2J"))) == 1
    assert "\x1b" not in capsys.readouterr().err
