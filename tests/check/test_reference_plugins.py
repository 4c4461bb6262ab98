"""The reference plugins keep every rule, up to the highest level."""

from __future__ import annotations

import pytest

from modular_tf.check.job import Limits
from modular_tf.check.level import Level
from modular_tf.check.outcome import Pass, Verdict
from modular_tf.check.plan import candidates_of
from modular_tf.check.run import check_plugins
from modular_tf.check.settings import CheckSettings
from tests.contrib.built_plugin import installed_plugin
from tests.fixtures.matrices import sampled

_FINE = frozenset({Verdict.PASSED, Verdict.NOTED, Verdict.SKIPPED})
_QUICKLY = {
    "large_bytes": 1 << 18,
    "many": 200,
    "pressure_mib": 64,
    "programs": 10,
    "repeat": 200,
}


_PLUGINS = ["ram_filesystem", "posix_filesystem", "host_device"]


@pytest.mark.parametrize("name", sampled(_PLUGINS, ["posix_filesystem", "host_device"]))
def test_a_reference_plugin_passes_everything(name):
    settings = CheckSettings(level=Level.HARD, through_host=True, options=_QUICKLY)
    candidates, problems = candidates_of([str(installed_plugin(name))])
    report = check_plugins(candidates, settings, seed=1, limits=Limits(patience=10.0))
    (plugin,) = report.plugins
    amiss = [outcome for outcome in plugin.outcomes if outcome.verdict not in _FINE]
    passed = {o.reached for o in plugin.outcomes if o.verdict is Verdict.PASSED}

    assert problems == []
    assert amiss == []
    assert passed == set(Pass)
    assert report.conforms
