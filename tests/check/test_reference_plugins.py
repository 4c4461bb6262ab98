"""The reference plugins keep every rule, up to the highest level, and leave nothing behind."""

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
from tests.fixtures.matrices import sampled

_AT_LENGTH = {
    "large_bytes": 1 << 18, "many": 200, "pressure_mib": 64, "programs": 10, "repeat": 200,
}  # fmt: skip
_QUICKLY = {
    "large_bytes": 1 << 16, "many": 40, "pressure_mib": 32, "programs": 5, "repeat": 30,
}  # fmt: skip
# tests/contrib tries the same plugins by all checks in one process; here it is the whole kit.
_SAMPLE = [("posix_filesystem", "file://", _QUICKLY), ("host_device", None, _QUICKLY)]
_CASES = [
    *_SAMPLE,
    ("posix_filesystem", "", _QUICKLY),
    *((name, None, _AT_LENGTH) for name in ("ram_filesystem", "posix_filesystem", "host_device")),
]


@pytest.mark.parametrize("case", sampled(_CASES, _SAMPLE), ids=lambda case: f"{case[0]} {case[1]}")
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
