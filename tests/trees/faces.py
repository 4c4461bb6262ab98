"""The public faces of files, in a child process that serves one call after the other.

The process is one for all stores: plugins read their environment once, `ram` keeps its files in the
memory of its process, and what crashes or does not end takes no test run with it.

Usage: python -m tests.trees.faces  (calls by standard input, answers by standard output, as JSON)
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKOUT = Path(__file__).parents[2]
LIMIT_S = 60
CONFIGURATION = """\
[filesystems]
py = { object = "tests.trees.python_store:store" }
"""


@dataclass(frozen=True)
class Ended:
    """How a call ended.

    Attributes:
        ok: It reported no failure.
        said: The message of its error, or standard error.
        value: What it returned, if JSON can express that; standard output of a command.
    """

    ok: bool
    said: str
    value: Any = None


class Faces:
    """The child process."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        configuration = folder / "configuration.toml"
        configuration.write_text(CONFIGURATION)
        self._log = folder / "faces.log"
        path = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH"), str(CHECKOUT)]))
        self._environment = {
            **os.environ,
            **environment,
            "MODULAR_TF_CONFIG": str(configuration),
            "MODULAR_TF_FIRST_CONTACT": "never",
            "MODULAR_TF_FSSPEC_FALLBACK": "0",
            "XDG_STATE_HOME": str(folder / "state"),
            "TESTS_TREES_PATH": path,
        }
        self._folder = folder
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start a new child; files of `ram` and `py` begin with none."""
        self.end()
        code = "import os, sys; sys.path += os.environ['TESTS_TREES_PATH'].split(os.pathsep);"
        code += "from tests.trees.faces import serve; serve()"
        with self._log.open("ab") as log:
            self._child = subprocess.Popen(
                [sys.executable, "-X", "faulthandler", "-c", code],
                cwd=self._folder,
                env=self._environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
            )

    def end(self) -> None:
        """Kill the child."""
        if self._child is not None:
            self._child.kill()
            self._child.communicate()
            self._child = None

    def call(self, face: str, name: str, *arguments: object, **options: object) -> Ended:
        """Call an operation of a face, and return how that ended."""
        if self._child is None:
            self.start()
        child = self._child
        assert child is not None
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps([face, name, arguments, options]).encode() + b"\n")
        child.stdin.flush()
        ready, _, _ = select.select([child.stdout], [], [], LIMIT_S)
        answer = child.stdout.readline() if ready else b""
        if not answer:
            self.end()
            said = f"ended with status {child.returncode}" if ready else f"runs for {LIMIT_S} s"
            log = self._log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"{face}.{name}{arguments}: the process {said}\n{log}")
        return Ended(*json.loads(answer))


def serve() -> None:
    """Answer calls until standard input ends."""
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    server = _Server()
    for line in sys.stdin.buffer:
        face, name, arguments, options = json.loads(line)
        try:
            answer = getattr(server, f"call_{face}")(name, *arguments, **options)
        except Exception as error:  # noqa: BLE001  (reported to the caller)
            frames = "".join(traceback.format_exception(error)[-3:])
            answer = (False, f"{type(error).__name__}: {error}", frames)
        answers.write(json.dumps(answer, default=repr).encode() + b"\n")


def _share_service(kind: Any) -> None:
    """Give every command the same service: files of `ram` are those of its plugin's instance."""
    shared: list[Any] = []
    make, initialize = kind.__new__, kind.__init__

    def get(cls: Any, *arguments: Any, **options: Any) -> Any:
        if not shared:
            shared.append(make(cls))
            initialize(shared[0], *arguments, **options)
        return shared[0]

    kind.__new__ = get
    kind.__init__ = lambda self, *arguments, **options: None
    kind.close = lambda self: None


class _Server:
    def __init__(self) -> None:
        import modular_tf as mtf

        _share_service(mtf.PluginService)
        self._mtf = mtf
        self._service = mtf.default_service()
        self._gfile = mtf.gfile

    def call_cli(self, *words: str) -> tuple[bool, str, str]:
        from modular_tf.cli.main import run

        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            saved = os.dup(1), os.dup(2)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            try:
                code = run(["fs", *words])
                sys.stdout.flush()
                sys.stderr.flush()
            finally:
                for number, kept in zip((1, 2), saved, strict=True):
                    os.dup2(kept, number)
                    os.close(kept)
            texts = []
            for file in (out, err):
                file.seek(0)
                texts.append(os.fsdecode(file.read()))
        return code == 0, f"exit {code}: {texts[1]}", texts[0]

    def call_fsspec(self, name: str, scheme: str, *arguments: Any, **options: Any) -> Any:
        fs = self._mtf.fsspec.filesystem_class(scheme)(service=self._service)
        fs.invalidate_cache()
        return True, "", getattr(fs, name)(*arguments, **options)

    def call_gfile(self, name: str, *arguments: Any, **options: Any) -> Any:
        failures: list[str] = []
        if name == "walk":
            found = list(
                self._gfile.walk(*arguments, onerror=lambda error: failures.append(str(error)))
            )
            return not failures, "; ".join(failures), found
        return True, "", getattr(self._gfile, name)(*arguments, **options)

    def call_filesystem(self, name: str, uri: str, *arguments: Any) -> Any:
        fs = self._service.filesystem_for(uri)
        return True, "", getattr(fs, name)(uri, *arguments)

    def call_raw(self, name: str, *arguments: Any) -> Any:
        """Prepare or read what only this process has: files of `ram`, and of the Python store."""
        return True, "", getattr(self, f"_{name}")(*arguments)

    def _ram_put(self, uri: str, data: str) -> None:
        fs = self._service.filesystem("ram")
        fs.recursively_create_dir(uri.rpartition("/")[0])
        with fs.new_writable_file(uri) as file:
            file.append(data.encode())

    def _ram_contents(self, top: str) -> dict[str, str]:
        fs = self._service.filesystem("ram")
        found, waiting = {}, [""] if fs.path_exists(top) else []
        while waiting:
            at = waiting.pop()
            for child in fs.get_children(top + at):
                path = f"{at}/{child}"
                if fs.is_directory(top + path):
                    waiting.append(path)
                    found[path[1:] + "/"] = ""
                else:
                    found[path[1:]] = fs.read_file(top + path).decode()
        return found

    def _py_put(self, path: str, data: str) -> None:
        from tests.trees.python_store import store

        store.pipe_file(path, data.encode())

    def _py_contents(self, top: str) -> dict[str, str]:
        from tests.trees.python_store import store

        prefix = top.rstrip("/") + "/"
        found = {
            key[len(prefix) :] + "/": "" for key in store.pseudo_dirs if key.startswith(prefix)
        }
        for key, file in store.store.items():
            if key.startswith(prefix):
                found[key[len(prefix) :]] = file.getvalue().decode()
        return found


if __name__ == "__main__":
    serve()
