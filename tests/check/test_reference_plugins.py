"""The reference plugins keep every rule, up to the highest level, and leave nothing behind.

This is the kit as users run it, before a release; each run tries the same checks in one process for
each plugin (tests/contrib/test_conformance.py).
"""

from __future__ import annotations

import pytest

from modular_tf.check.job import Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.plan import candidates_of
from modular_tf.check.run import check_plugins
from modular_tf.check.settings import CheckSettings
from tests.check.trying import FINE
from tests.contrib.built_plugin import installed_plugin
from tests.fixtures.matrices import BEYOND_THE_SAMPLE

_AT_LENGTH = {
    "large_bytes": 1 << 18, "many": 200, "pressure_mib": 64, "programs": 10, "repeat": 200,
}  # fmt: skip
_QUICKLY = {
    "large_bytes": 1 << 16, "many": 40, "pressure_mib": 32, "programs": 5, "repeat": 30,
}  # fmt: skip
_CASES = [
    *(("posix_filesystem", scheme, _QUICKLY) for scheme in ("", "file://")),
    *((name, None, _AT_LENGTH) for name in ("ram_filesystem", "posix_filesystem", "host_device")),
]


@BEYOND_THE_SAMPLE
@pytest.mark.parametrize("case", _CASES, ids=lambda case: f"{case[0]} {case[1]}")
def test_a_reference_plugin_passes_everything(case, tmp_path):
    """On a filesystem of this machine, below a root of the user's, of which nothing is left."""
    name, scheme, options = case
    root = None if scheme is None else f"{scheme}{tmp_path}"
    settings = CheckSettings(level=Level.HARD, through_host=True, options=options, root=root)
    candidates, problems = candidates_of([str(installed_plugin(name))])
    report = check_plugins(candidates, settings, seed=1, limits=Limits(patience=10.0))
    (plugin,) = report.plugins

    assert problems == []
    assert [outcome for outcome in plugin.outcomes if outcome.verdict not in FINE] == []
    assert {o.reached for o in plugin.outcomes if o.verdict is Verdict.PASSED} == set(Pass)
    assert report.conforms
    assert list(tmp_path.iterdir()) == []
