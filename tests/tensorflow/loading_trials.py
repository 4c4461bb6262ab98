"""What TensorFlow does with a case of `bad_libraries`, and what `modular-tf doctor` reports."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.fixtures.process_group import run_in_group
from tests.tensorflow.bad_libraries import MARK

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from tests.tensorflow.bad_libraries import Case

_VARIABLE = "TF_PLUGGABLE_DEVICE_LIBRARY_PATH"
_SERVER = Path(__file__).with_name("import_server.py")
_DOCTOR_S = 280


class Ended(NamedTuple):
    """How something ended, or is said to end.

    Attributes:
        outcome: As `modular_tf.tensorflow.loading_outcome.Outcome` calls it.
        message: With an exception, its message; of a prediction, why.
    """

    outcome: str
    message: str = ""


class Trials:
    """Tries cases with one TensorFlow. A context manager, which ends what it has started.

    Attributes:
        site: A folder `site-packages` that has this TensorFlow and what it needs.

    Args:
        tensorflow: The folder that pip has installed it into.
        python: The interpreter that imports it.
        scratch: An empty folder.
        environment: Of the child processes.
    """

    def __init__(
        self,
        tensorflow: Path,
        python: str,
        scratch: Path,
        environment: Mapping[str, str],
    ) -> None:
        self.site = scratch / "site-packages"
        self._tensorflow = tensorflow
        self._python = python
        self._scratch = scratch
        self._environment = dict(environment)
        self._server: subprocess.Popen[str] | None = None
        self._plugins = self.site / "tensorflow-plugins"
        self._elsewhere = scratch / "elsewhere"
        self._mark = scratch / "mark"
        self.site.mkdir(parents=True)
        for entry in tensorflow.iterdir():
            (self.site / entry.name).symlink_to(entry)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.kill()
            self._server.communicate()

    def lay(self, case: Case) -> None:
        """Make the files of a case."""
        case.lay(self._plugins if case.way == "import" else self._elsewhere)
        if case.way != "import":
            self._plugins.mkdir(exist_ok=True)
            for left in self._plugins.iterdir():
                left.unlink()

    def observe(self, case: Case) -> Ended:
        """Return what TensorFlow does with the files that were laid."""
        self._mark.unlink(missing_ok=True)
        status, message = self._by_fork(case)
        if status == -signal.SIGALRM:
            return Ended("hangs")
        if status < 0:
            return Ended("aborts", signal.Signals(-status).name)
        if message:
            return Ended("fails", message)
        return Ended("loads" if self._mark.exists() else "ignored")

    def _by_fork(self, case: Case) -> tuple[int, str]:
        if self._server is None:
            self._plugins.rename(self._scratch / "set-aside")  # the server imports none
            self._server = subprocess.Popen(
                [self._python, str(_SERVER)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                cwd=self._scratch,
                env=self._of_tensorflow(),
            )
            self._read()
            (self._scratch / "set-aside").rename(self._plugins)
        job = {"plugin": self._plugin(case), "environment": self._of_case(case)}
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(job) + "\n")
        self._server.stdin.flush()
        answer = self._read()
        return answer["status"], answer["message"]

    def _read(self) -> dict[str, Any]:
        assert self._server is not None
        assert self._server.stdout is not None
        line = self._server.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._python} cannot import TensorFlow of {self._tensorflow}")
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _of_tensorflow(self) -> dict[str, str]:
        path = [str(self.site), str(self._tensorflow)]
        return {
            **self._environment,
            "PYTHONPATH": os.pathsep.join(path),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "CUDA_VISIBLE_DEVICES": "",
        }

    def _plugin(self, case: Case) -> str:
        return str(self._elsewhere / "plugin.so") if case.way == "register" else ""

    def report(self, case: Case) -> tuple[Ended, int]:
        """Return what doctor reports of them: the worst row, and doctor's exit status."""
        environment = {**self._environment, **self._of_case(case)}
        before = self._environment.get("PYTHONPATH", "")
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [before, str(self.site)]))
        plugin = self._plugin(case)
        named = [f"--plugin={plugin}"] if plugin else []
        command = [sys.executable, "-m", "modular_tf", *named, "doctor", "--json"]
        done = run_in_group(command, cwd=self._scratch, env=environment, timeout=_DOCTOR_S)
        if done.returncode not in {0, 1}:
            return Ended("doctor fails", done.stderr[-500:]), done.returncode
        found = json.loads(done.stdout)
        return _reported(found, case), done.returncode

    def _of_case(self, case: Case) -> dict[str, str]:
        variable = {_VARIABLE: str(self._plugins / case.variable)} if case.variable else {}
        return {MARK: str(self._mark), **variable}


def difference(observed: Ended, reported: Ended) -> str:
    """Return what is wrong with a report; "" where nothing is.

    Where the import raises, the report has the very message, but for the spelling of paths.
    """
    if reported.outcome != observed.outcome:
        return f"expected {observed.outcome!r}, found {reported.outcome!r}"
    if observed.outcome == "fails" and _plain(reported.message) not in _plain(observed.message):
        return f"expected {observed.message!r}, found {reported.message!r}"
    return ""


def _reported(found: dict[str, list[dict[str, str]]], case: Case) -> Ended:
    if case.way == "register":
        rows = [row for row in found["plugins"] if row["path"].endswith("/elsewhere/plugin.so")]
        return Ended(rows[0]["in_tensorflow"], rows[0]["in_tensorflow_message"])
    rows = [row for row in found["files"] if not row["path"].endswith("/companions")]
    worst = max(rows, key=lambda row: _SEVERITY.index(row["outcome"]))
    return Ended(worst["outcome"], worst["message"])


_SEVERITY = ("ignored", "loads", "unknown", "ends in use", "fails", "hangs", "aborts")


def _plain(message: str) -> str:
    """Return a message with its paths in one spelling: the linker follows search paths."""
    return re.sub(r"/[^\s:]+", lambda path: os.path.normpath(path[0]), message)
