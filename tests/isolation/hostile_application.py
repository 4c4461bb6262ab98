"""An application with a hostile plugin, which is asked for one deed after the other."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.fixtures.process_group import end_group
from tests.isolation.hostile_plugin import hostile_plugin
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

if TYPE_CHECKING:
    from tests.isolation.hostile_deeds import Deed

_APPLICATION = Path(__file__).with_name("application.py")
_LIMIT_S = 240.0


class HostileApplication:
    """The application; one that has ended is not started again.

    Args:
        folder: An empty one.
    """

    def __init__(self, folder: Path) -> None:
        good = build_plugin(variants("filesystem")["good"], {"FIXTURE_SCHEME": "other"})
        command = [sys.executable, str(_APPLICATION), str(hostile_plugin()), str(good), str(folder)]
        self._errors = folder / "errors"
        with self._errors.open("w") as errors:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd=folder,
                env=os.environ,
                text=True,
                bufsize=1,
                start_new_session=True,
            )

    def try_deed(self, deed: Deed) -> dict[str, Any]:
        """Have the plugin do it, and return what the application tells.

        Raises:
            AssertionError: The application did not survive it.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(deed._asdict()) + "\n")
        deadline = time.monotonic() + _LIMIT_S
        ready, _, _ = select.select([self._process.stdout], [], [], deadline - time.monotonic())
        line = self._process.stdout.readline() if ready else ""
        if not line:
            state = "does not answer" if self._process.poll() is None else "has ended"
            self.close()
            raise AssertionError(f"the application {state}: {self._errors.read_text()[-2000:]}")
        told: dict[str, Any] = json.loads(line)
        return told

    @property
    def runs(self) -> bool:
        """Whether it can be asked for more."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it, with all that it has started. Safe to call twice."""
        for pipe in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # it has ended, and what was not sent is lost
                if pipe is not None:
                    pipe.close()
        end_group(self._process)
