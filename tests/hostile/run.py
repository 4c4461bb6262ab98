"""Running an application with each hostile library, and judging how it fared."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.fixtures.process_group import run_in_group
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

if TYPE_CHECKING:
    from tests.hostile.libraries import HostileLibrary

_APPLICATION = Path(__file__).with_name("application.py")
_SERVES = ["before://", "after://", "ram://", "files", "HOST_CPU"]
_TIMEOUT_S = 120.0
_MOST_OF_OUTPUT = 300


class Outcome(NamedTuple):
    """How an application fared.

    Attributes:
        library: The library.
        state: What became of it; how the application ended, where that did.
        reason: What the user is answer of it.
        served: What the application still served.
    """

    library: HostileLibrary
    state: str
    reason: str
    served: list[str]

    @property
    def problem(self):
        if self.served != _SERVES:
            return f"the application was {self.state} and served {self.served}: {self.reason}"
        if self.state not in self.library.states:
            return f"it is {self.state}, expected {sorted(self.library.states)}"
        return None if self.reason else "no reason is given"


def outcome_of(library, folder):
    """Run an application that has the library among its plugins.

    Args:
        library: The library.
        folder: An empty one, which is removed.
    """
    try:
        folder.mkdir(parents=True)
        return _outcome_of(library, folder)
    finally:
        shutil.rmtree(folder)


def _outcome_of(library, folder):
    good = [_good(scheme) for scheme in ("before", "after")]
    (folder / "made").mkdir()
    made = library.make(folder / "made")
    command = [sys.executable, str(_APPLICATION), str(made), *map(str, good), str(folder)]
    environment = _environment(folder)
    if library.ends:
        environment["MISDEED_MOMENT"] = str(folder / "moment")
    try:
        ended = run_in_group(command, cwd=folder, env=environment, timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return Outcome(library, f"still running after {_TIMEOUT_S:.0f} s", "", [])
    if library.ends:
        for _ in range(1, library.times):
            Path(environment["MISDEED_MOMENT"]).unlink()
            ended = run_in_group(command, cwd=folder, env=environment, timeout=_TIMEOUT_S)
        return _outcome_of_end(library, command, ended.stderr, folder)
    if ended.returncode != 0:
        return Outcome(
            library, f"ended with {ended.returncode}", ended.stderr[-_MOST_OF_OUTPUT:], []
        )
    answer = json.loads(ended.stdout.splitlines()[-1])
    return Outcome(library, answer["state"], _reason(answer["reasons"]), answer["served"])


def _outcome_of_end(library, command, output, folder):
    """Look at what names a library that ended an application, at its end and in the next one."""
    line = next((line for line in output.splitlines() if library.ends in line), "")
    if not line:
        return Outcome(library, "named by nobody", output[-_MOST_OF_OUTPUT:], [])
    ended = run_in_group(command, cwd=folder, env=_environment(folder), timeout=_TIMEOUT_S)
    if ended.returncode != 0:
        return Outcome(library, f"ended the next with {ended.returncode}", ended.stderr, [])
    answer = json.loads(ended.stdout.splitlines()[-1])
    known = any("LD-130" in fact for fact in answer["why"])
    return Outcome(library, "named" if known else "known to nobody", line, answer["served"])


def _good(scheme):
    return build_plugin(variants("filesystem")["good"], {"FIXTURE_SCHEME": scheme})


def _environment(folder):
    own = {k: v for k, v in os.environ.items() if not k.startswith("MODULAR_TF_")}
    for kind in ("CACHE", "STATE", "CONFIG"):
        own[f"XDG_{kind}_HOME"] = str(folder / kind.lower())
    return own


def _reason(reasons):
    return "; ".join(f"{one['message']} ({one['rule']})" for one in reasons)
