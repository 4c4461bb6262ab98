"""Processes that Python starts: by spawn and by the fork server, from a process with plugins."""

from __future__ import annotations

import pytest

from tests.coexistence.conftest import WORK
from tests.fixtures.matrices import sampled_product

_SCRIPT = """
import multiprocessing, threading
from concurrent.futures import ProcessPoolExecutor

def task():
    with PluginService(plugin_paths=sys.argv[1:2]) as service:
        service.load()
        use_all(service)
    return os.getpid()

if __name__ == "__main__":
    method = sys.argv[2]
    with PluginService(plugin_paths=sys.argv[1:2]) as service:
        service.load()
        use_all(service)
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context(method)) as pool:
            worker = pool.submit(task).result()
        assert worker != os.getpid()
        use_all(service)
    print("reached the end")
"""


@pytest.mark.parametrize(
    ("method", "policy"), sampled_product(("spawn", "forkserver"), ("new", "never"))
)
def test_workers_load_for_themselves(method, policy, run_python, fixture_plugin, tmp_path):
    script = tmp_path / "workers.py"
    script.write_text(WORK + _SCRIPT)

    child = run_python(
        script, fixture_plugin("good"), method, env={"MODULAR_TF_FIRST_CONTACT": policy}
    )

    assert child.stdout == "reached the end\n"
