"""The interpreter ends while threads of plugins log, call the host, or wait.

Callbacks that still wait at the end are in `tests.device.test_callbacks`.
"""

from __future__ import annotations

import pytest

_BEGIN = """
import os, sys, threading
from modular_tf.service.service import PluginService
service = PluginService(plugin_paths=sys.argv[1:])
service.load()
fs = service.filesystem("restless")
with fs.new_random_access_file("restless://f") as file:
    assert file.read(0, 9) == b"x"
print("end", flush=True)
"""
_ENDS = {
    "by itself": ("", 0),
    "closed": ("service.close()", 0),
    "exit": ("sys.exit(5)", 5),
    "an error": ("raise SystemExit(6)", 6),
    "without ado": ("os._exit(7)", 7),
    "exec": ("os.execv('/bin/sh', ['sh', '-c', 'exit 8'])", 8),
    "in a thread": ("threading.Thread(target=sys.exit).start()", 0),
}


@pytest.mark.parametrize(("code", "status"), _ENDS.values(), ids=_ENDS.keys())
@pytest.mark.parametrize("verbosity", ["0", "3"], ids=["logged", "dropped"])
def test_threads_that_log_and_call_the_host(code, status, verbosity, run_python, restless_plugin):
    child = run_python(
        _BEGIN + code,
        restless_plugin,
        status=status,
        env={"TF_CPP_MIN_LOG_LEVEL": verbosity},
    )

    assert child.stdout == "end\n"
    assert "Fatal" not in child.stderr


def test_a_thread_of_python_that_waits_in_a_plugin(run_python, restless_plugin):
    child = run_python(
        _BEGIN
        + """
waiting = threading.Event()
def wait():
    file = fs.new_random_access_file("restless://h/stubborn")
    waiting.set()
    file.read(0, 9)
threading.Thread(target=wait, daemon=True).start()
waiting.wait()
service.close_at_exit()
""",
        restless_plugin,
    )

    assert child.stdout == "end\n"
    assert "Fatal" not in child.stderr
