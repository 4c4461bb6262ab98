"""Applications that start at once: one tries a plugin, the others wait for its answer.

How they take turns, also where one is killed or stopped, is shown in `tests.storage`.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

APPLICATION = """
import sys, time
from modular_tf.service.pipeline import Admission
from modular_tf.service.service import PluginService

real = Admission.try_out

def try_out(self, entries, tell_progress):
    print("tries", *(entry.plugin.name for entry in entries))
    time.sleep(1)  # as a plugin with a slow init takes, so that the others meet it
    return real(self, entries, tell_progress)

Admission.try_out = try_out
with PluginService(plugin_paths=sys.argv[1:], bundled=False) as service:
    service.load()
    print(*(f"{record.name} is {record.state}" for record in service.plugins()))
"""


@pytest.mark.parametrize(("is_kept", "trials"), [(True, 1), (False, 3)], ids=["kept", "not kept"])
def test_a_plugin_is_tried_once_where_the_answer_can_be_kept(
    is_kept, trials, plugin_file, home, tmp_path
):
    library, nowhere = plugin_file("libone.so"), tmp_path / "a file"
    nowhere.touch()
    variables = {**os.environ, "XDG_CACHE_HOME": str(home if is_kept else nowhere)}
    command = [sys.executable, "-c", APPLICATION, library]
    running = [
        subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = "".join(process.communicate(timeout=120)[0] for process in running)

    assert sorted(said.splitlines()) == ["one is loaded"] * 3 + ["tries one"] * trials
