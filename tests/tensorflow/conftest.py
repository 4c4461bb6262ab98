"""What all tests of the bridge into TensorFlow share: one process that has imported it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from contextlib import contextmanager, suppress
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.children import describe
from tests.fixtures.tensorflow import environment_of_tensorflow, tensorflow_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SERVER = Path(__file__).with_name("server.py")


class TensorFlow:
    """Runs programs in forks of a process that has imported TensorFlow.

    Args:
        server: That process; see `server.py`.
    """

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def run(
        self,
        program: str | Path,
        *arguments: str | Path,
        folder: Path,
        env: Mapping[str, str] | None = None,
        timeout: float = 240,
    ) -> subprocess.CompletedProcess[str]:
        """Return what came of source text, or of a script.

        Args:
            program: Source text, or the path of a script.
            *arguments: `sys.argv[1:]` of the program.
            folder: Where it runs.
            env: More variables.
            timeout: Seconds until it is killed.
        """
        is_script = isinstance(program, Path)
        output, complaint = folder / "stdout", folder / "stderr"
        job = {
            "program": program.read_text("utf-8") if is_script else dedent(program),
            "arguments": [str(argument) for argument in arguments],
            "folder": str(folder),
            "environment": {**os.environ, **environment_of_tensorflow(), **(env or {})},
            "stdout": str(output),
            "stderr": str(complaint),
        }
        print(json.dumps(job), file=self._server.stdin, flush=True)
        fork = self._number()
        timer = threading.Timer(timeout, _kill, [fork])
        timer.start()
        status = self._number()
        timer.cancel()
        texts = [file.read_text(errors="surrogateescape") for file in (output, complaint)]
        return subprocess.CompletedProcess([str(program)], status, *texts)

    def _number(self) -> int:
        line = self._server.stdout.readline()
        assert line, "the process that imports TensorFlow has ended"
        return int(line)


def _kill(fork: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(fork, signal.SIGKILL)


def linked_site(folder: Path) -> Path:
    """Return a folder `site-packages` that has TensorFlow, and an empty `tensorflow-plugins`."""
    site = folder / "site-packages"
    site.mkdir(parents=True)
    for entry in tensorflow_folder().iterdir():
        (site / entry.name).symlink_to(entry)
    (site / "tensorflow-plugins").mkdir()
    return site


@contextmanager
def running_tensorflow(site: Path) -> Iterator[TensorFlow]:
    """Import TensorFlow from a folder in a process that runs programs until the block ends."""
    path = [str(site), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {
        **os.environ,
        **environment_of_tensorflow(),
        "PYTHONPATH": os.pathsep.join(path),
        "OPENBLAS_NUM_THREADS": "1",  # else numpy starts threads
    }
    with subprocess.Popen(
        [sys.executable, "-X", "faulthandler", str(_SERVER)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
        text=True,
    ) as server:
        try:
            yield TensorFlow(server)
        finally:
            server.kill()


@pytest.fixture(scope="session")
def tensorflow_site(tmp_path_factory) -> Path:
    """The folder `site-packages` that the process of the tests imports TensorFlow from."""
    return linked_site(tmp_path_factory.mktemp("tensorflow"))


@pytest.fixture(scope="session")
def tensorflow(tensorflow_site: Path) -> Iterator[TensorFlow]:
    """The process that has imported TensorFlow."""
    with running_tensorflow(tensorflow_site) as found:
        yield found


@pytest.fixture
def run_tensorflow(tensorflow: TensorFlow, tmp_path: Path):
    """Return what runs a program with TensorFlow, which must end with a status, by default 0."""

    def run(program, *arguments, env=None, timeout=240, status=0):
        done = tensorflow.run(program, *arguments, folder=tmp_path, env=env, timeout=timeout)
        assert done.returncode == status, describe(done)
        return done

    return run
