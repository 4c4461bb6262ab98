"""Python's own modes for finding mistakes, and interpreters within an interpreter."""

from __future__ import annotations

import os
import sys

import pytest

from tests.coexistence.conftest import ALL, WORK
from tests.fixtures.children import describe
from tests.fixtures.matrices import sampled
from tests.fixtures.process_group import run_in_group

_MODES = ["-X dev -W error -b -b", "-OO -X utf8=0", "-X dev -X tracemalloc=5"]


@pytest.mark.parametrize("flags", sampled(_MODES, _MODES[:2]))
def test_all_works_and_nothing_is_said(flags, fixture_plugin, tmp_path):
    """Also where memory that is fresh or freed is never zero by chance."""
    command = [sys.executable, *flags.split(), "-c", ALL, str(fixture_plugin("good"))]
    environment = {**os.environ, "MALLOC_PERTURB_": "165"}
    child = run_in_group(command, cwd=tmp_path, env=environment, timeout=120)

    ended = child.returncode, child.stdout, child.stderr
    assert ended == (0, "reached the end\n", ""), describe(child)


def test_an_interpreter_within_the_interpreter_is_refused(run_python):
    child = run_python(
        WORK
        + """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

def load_within():
    other = interpreters.create()
    interpreters.run_string(other, '''if True:
        load = "from modular_tf.service.service import PluginService; PluginService().load()"
        for use in ("import modular_tf.native._dlpack", load):
            try:
                exec(use)
            except ImportError as error:
                print(error, flush=True)
    ''')
    interpreters.destroy(other)

load_within()
with PluginService() as service:
    service.load()
    use_all(service)
load_within()
"""
    )

    answers = child.stdout.splitlines()
    assert len(answers) == 4
    for answer in answers:  # ours, or Python's own words
        assert "main interpreter" in answer or "loading in subinterpreters" in answer
