"""A plugin in a process of its own: a crash there is a failed test here, not the end of all."""

from __future__ import annotations

import os
import subprocess
import sys
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import modular_tf
from modular_tf.native.runtime_library import runtime_path

_CHECKOUT = Path(__file__).parents[2]


def installed_plugin(name: str) -> Path:
    """Return the installed library of a reference plugin.

    Raises:
        FileNotFoundError: The package was built without it.
    """
    for folder in modular_tf.__path__:
        path = Path(folder, "plugins", f"lib{name}.so")
        if path.is_file():
            return path
    raise FileNotFoundError(f"no plugins/lib{name}.so in {list(modular_tf.__path__)}")


class PluginProcess:
    """Methods of `RawFilesystem` or `RawDevice`, run in a child process that starts at once."""

    def __init__(
        self, kind: str, *arguments: str | Path, env: dict[str, str] | None = None
    ) -> None:
        self._connection, other = Pipe()
        command = [sys.executable, "-m", "tests.contrib.child", str(other.fileno()), kind]
        self._child = subprocess.Popen(
            [*command, str(runtime_path()), *map(str, arguments)],
            pass_fds=[other.fileno()],
            env={**os.environ, "PYTHONPATH": str(_CHECKOUT), **(env or {})},
        )
        other.close()

    def __getattr__(self, method: str) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            return self._call(method, arguments, options)

        return call

    def _call(self, method: str, arguments: Any, options: Any) -> Any:
        try:
            self._connection.send((method, arguments, options))
            fine, answer = self._connection.recv()
        except (EOFError, OSError) as error:
            status = self._child.wait(timeout=30)
            raise AssertionError(f"the plugin ended its process with {status}") from error
        if not fine:
            raise AssertionError(answer)
        return answer

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    @property
    def alive(self) -> bool:
        """Whether the child still runs."""
        return self._child.poll() is None

    def close(self) -> int:
        """Let the child end by itself and return its exit status."""
        self._connection.close()
        return self._child.wait(timeout=60)
