"""One of several applications that start at once; it tells what it tries, and when it waits.

Arguments: its name, the folder of signs, the files of plugins. It leaves the files `NAME.probe` and
`NAME.try` when it begins with that, and `NAME.waits` when it waits for another. It stops at a step
as long as there is no file `NAME.may-probe` or `NAME.may-try`. In the end it prints as JSON what it
probed and tried, and the states.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from modular_tf.service.pipeline import Admission
from modular_tf.service.plugins import PluginScan
from modular_tf.service.service import PluginService
from modular_tf.service.storage import private_directory

NAME, SIGNS = sys.argv[1], Path(sys.argv[2])
done: dict[str, list[str]] = {"probe": [], "try": []}


def step(sign: str, names: list[str]) -> None:
    """Tell that a step begins, and wait until it may."""
    (SIGNS / f"{NAME}.{sign}").touch()
    while not (SIGNS / f"{NAME}.may-{sign}").exists():
        time.sleep(0.01)
    done[sign] += names


real_probe, real_try_out, real_sleep = PluginScan.probe, Admission.try_out, private_directory.sleep


def probe(self, candidates, tell_progress):
    if candidates:
        step("probe", [found.name for found in candidates])
    real_probe(self, candidates, tell_progress)


def try_out(self, entries, tell_progress):
    step("try", [entry.plugin.name for entry in entries])
    return real_try_out(self, entries, tell_progress)


def wait(seconds):
    (SIGNS / f"{NAME}.waits").touch()
    real_sleep(seconds)


def main() -> None:
    """Load all plugins."""
    PluginScan.probe, Admission.try_out, private_directory.sleep = probe, try_out, wait
    with PluginService(plugin_paths=sys.argv[3:], bundled=False) as service:
        service.load()
        states = {record.name: record.state.value for record in service.plugins()}
    print(json.dumps({**done, "states": states}))


if __name__ == "__main__":
    main()
