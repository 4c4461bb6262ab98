"""A plugin that only the application makes crash: after the second time it is done without."""

from __future__ import annotations

import shutil
import signal
from typing import TYPE_CHECKING

import pytest

from tests.fixtures.compiler import compile_object, link_library
from tests.plugins.matrix import FOLDER

if TYPE_CHECKING:
    from pathlib import Path

# First contact does not see variables of this package's own.
CRASH = "MODULAR_TF_TEST_CRASH"
ENVIRONMENT = {"MODULAR_TF_FIRST_CONTACT": "new", "MODULAR_TF_LOAD": "eager"}
CONSTRUCTOR = f"""
#include <stdlib.h>
__attribute__((constructor)) static void crash_here(void) {{
  if (getenv("{CRASH}")) abort();
}}
"""
APPLICATION = """
    import sys
    from modular_tf.service.service import PluginService
    with PluginService(bundled=False) as service:
        service.load(sys.argv[1])
        (record,) = [record for record in service.plugins() if record.path == sys.argv[1]]
        print(record.state, record.reason.rule if record.reason else None)
"""
RETRY = """
    import sys
    from modular_tf.cli.main import run
    sys.exit(run(["quarantine", "retry", sys.argv[1]]))
"""


@pytest.fixture
def crashing_on_demand(fixture_plugin, tmp_path: Path) -> str:
    """A good plugin beside a library of its own that crashes where it is told to."""
    source = tmp_path / "crash_here.c"
    source.write_text(CONSTRUCTOR)
    name = "libfixture_companion.so"
    objects = [compile_object(FOLDER / "filesystem" / "companion.c"), compile_object(source)]
    shutil.copy(link_library(name, objects, [f"-Wl,-soname,{name}"]), tmp_path / name)
    plugin = tmp_path / "libcrashing.so"
    shutil.copy(fixture_plugin("companion"), plugin)
    return str(plugin)


def test_a_plugin_that_ends_the_application_again_is_kept_out_of_the_next(
    run_python, crashing_on_demand: str
):
    crashing = {**ENVIRONMENT, CRASH: "1"}
    for _ in range(2):
        run_python(APPLICATION, crashing_on_demand, env=crashing, status=-signal.SIGABRT)

    assert run_python(APPLICATION, crashing_on_demand, env=crashing).stdout == (
        "quarantined LD-070\n"
    )
    run_python(RETRY, crashing_on_demand, env=crashing, status=-signal.SIGABRT)
    assert run_python(APPLICATION, crashing_on_demand, env=ENVIRONMENT).stdout == (
        "quarantined LD-070\n"
    )
    retried = run_python(RETRY, crashing_on_demand, env=ENVIRONMENT)
    assert "\tloaded\t" in retried.stdout
    assert run_python(APPLICATION, crashing_on_demand, env=ENVIRONMENT).stdout == "loaded None\n"
