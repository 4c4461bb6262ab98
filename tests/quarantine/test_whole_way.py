"""A plugin that only the application makes crash: after the second time it is done without."""

import shutil
import signal

import pytest

from tests.fixtures.compiler import compile_object, link_library, object_of_text
from tests.plugins.matrix import FOLDER

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
def crashing_on_demand(fixture_plugin, tmp_path):
    """A good plugin beside a library of its own that crashes on demand."""
    name = "libfixture_companion.so"
    objects = [compile_object(FOLDER / "filesystem" / "companion.c"), object_of_text(CONSTRUCTOR)]
    shutil.copy(link_library(name, objects, [f"-Wl,-soname,{name}"]), tmp_path / name)
    plugin = tmp_path / "libcrashing.so"
    shutil.copy(fixture_plugin("companion"), plugin)
    return str(plugin)


def test_a_plugin_that_ends_the_application_again_is_refused_by_the_next(
    run_forked, crashing_on_demand
):
    crashing = {**ENVIRONMENT, CRASH: "1"}

    def run(code, env, **options):
        return run_forked(code, crashing_on_demand, env=env, **options).stdout

    for _ in range(2):
        run(APPLICATION, crashing, status=-signal.SIGABRT)
    assert run(APPLICATION, crashing) == "quarantined LD-070\n"
    run(RETRY, crashing, status=-signal.SIGABRT)
    assert run(APPLICATION, ENVIRONMENT) == "quarantined LD-070\n"
    assert "\tloaded\t" in run(RETRY, ENVIRONMENT)
    assert run(APPLICATION, ENVIRONMENT) == "loaded None\n"
