"""What `run` makes of every way in which a command can end."""

import pytest

from modular_tf import errors
from modular_tf.cli import frame, main, plugins

_INTERNAL = "internal error of modular-tf: ZeroDivisionError: oops"


@pytest.fixture
def run(monkeypatch):
    """Run a verb that raises an error or returns a number, with `verbose` -v given."""

    def run(result, verbose=0):
        def act(*_):
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr(plugins.schemes, "callback", act)
        return main.run(["schemes", *["-v"] * verbose])

    return run


@pytest.mark.parametrize(
    ("result", "code", "line"),
    [
        (3, 3, ""),  # the verb's answer
        (errors.NotFoundError("no such scheme: zz"), 1, "modular-tf: no such scheme: zz\n"),
        (PermissionError(13, "Permission denied"), 1, "modular-tf: Permission denied\n"),
        (FileNotFoundError(2, "No such file", "/a"), 1, "modular-tf: /a: No such file\n"),
        (errors.UnknownError("bad\x1b[2J"), 1, "modular-tf: bad\\x1b[2J\n"),
        (KeyboardInterrupt(), 130, ""),
        (
            ZeroDivisionError("oops"),
            70,
            f"modular-tf: {_INTERNAL} (run again with -v for the traceback)\n",
        ),
    ],
)
def test_the_exit_code_and_what_is_said(run, capsys, result, code, line):
    assert run(result) == code
    assert capsys.readouterr().err == line


def test_our_own_fault_has_a_traceback_when_asked_for(run, capsys, monkeypatch):
    monkeypatch.setattr(frame, "set_up_log", lambda *_: None)

    assert run(ZeroDivisionError("oops"), verbose=1) == 70
    shown = capsys.readouterr().err
    assert "Traceback" in shown
    assert _INTERNAL in shown
