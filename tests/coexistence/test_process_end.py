"""The interpreter ends while threads of plugins log, call the host, or wait.

Callbacks that still wait at the end are in `tests.device.test_callbacks`.
"""

from __future__ import annotations

import pytest

from tests.fixtures.matrices import sampled_product

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
    "while a thread waits in a plugin": (
        """
waiting = threading.Event()
def wait():
    file = fs.new_random_access_file("restless://h/stubborn")
    waiting.set()
    file.read(0, 9)
threading.Thread(target=wait, daemon=True).start()
waiting.wait()
service.close_at_exit()
""",
        0,
    ),
}


@pytest.mark.parametrize(("end", "lines"), sampled_product(list(_ENDS), ("logged", "dropped")))
def test_threads_that_log_and_call_the_host(end, lines, run_forked, restless_plugin):
    code, status = _ENDS[end]
    child = run_forked(
        _BEGIN + code,
        restless_plugin,
        status=status,
        env={"TF_CPP_MIN_LOG_LEVEL": "0" if lines == "logged" else "3"},
    )

    assert child.stdout == "end\n"
    assert "Fatal" not in child.stderr
