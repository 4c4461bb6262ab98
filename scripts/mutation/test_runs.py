"""Running tests of the checkout against a copy of the package."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_SAID_AT_MOST = 4000


class Ended(NamedTuple):
    """How a run of tests ended.

    Attributes:
        status: The exit status of pytest; None if it ran out of time.
        said: The end of its output.
        failed: The tests that failed.
    """

    status: int | None
    said: str
    failed: tuple[str, ...]


class TestRuns:
    """A copy of the installed package, and runs of tests against it.

    Args:
        checkout: Where the tests are.
        package: The installed package; it is copied together with its metadata.
        folder: An empty folder, for the copy and for what the tests write.
    """

    __test__ = False

    def __init__(self, checkout: Path, package: Path, folder: Path) -> None:
        self._checkout = checkout
        self._installed = folder / "installed"
        self.package = self._installed / package.name
        self._scratch = folder / "scratch"
        for source in package.parent.glob(f"{package.name}*"):
            if source.is_dir():
                shutil.copytree(source, self._installed / source.name)
        self._scratch.mkdir(parents=True)

    def run(
        self, tests: list[str], *options: str, timeout: float, env: dict[str, str] | None = None
    ) -> Ended:
        """Run tests and end all of their processes.

        Args:
            tests: Node ids, files or folders, relative to the checkout.
            *options: Of pytest.
            timeout: Seconds until they are ended.
            env: Variables on top of the own ones.
        """
        listed = self._scratch / "tests.txt"
        listed.write_text("".join(f"{self._checkout}/{test}\n" for test in tests), encoding="utf-8")
        command = [
            *(sys.executable, "-m", "pytest", "-c", f"{self._checkout}/pyproject.toml"),
            *(f"--rootdir={self._checkout}", "-q", "-p", "no:cacheprovider", "--tb=line"),
            *options,
            f"@{listed}",
        ]
        path = os.pathsep.join(
            map(str, (self._installed, self._checkout, Path(__file__).parents[1]))
        )
        process = subprocess.Popen(
            command, cwd=self._scratch, env={**os.environ, "PYTHONPATH": path, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
        try:
            said, _ = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            return Ended(None, "", ())
        finally:
            _end(process)
        return Ended(process.returncode, said[-_SAID_AT_MOST:], tuple(self._failed(said)))

    def _failed(self, said: str) -> Iterator[str]:
        """Yield the tests that pytest's summary names; it does so from where it runs."""
        for line in said.splitlines():
            if line.startswith(("FAILED ", "ERROR ")):
                path, colons, name = line.split(" ", 1)[1].split(" - ")[0].partition("::")
                yield f"{os.path.relpath(self._scratch / path, self._checkout)}{colons}{name}"


def _end(process: subprocess.Popen[str]) -> None:
    """End the process and those of its session that it left."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
