"""What the host does for slots that a plugin leaves NULL keeps the same rules as a plugin."""

from __future__ import annotations

import pytest

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.options import Options
from modular_tf.check.outcome import Pass, Verdict
from tests.check.trying import FINE, defect_job, ids_by_group
from tests.fixtures.matrices import sampled

_DEFAULTS = ("FS-212", "FS-228", "FS-235", "FS-244", "FS-261", "FS-271", "FS-275", "FS-293")
_STORES = [("filesystem", "defect"), ("local_filesystem", "file")]


@pytest.mark.parametrize("store", sampled(_STORES, _STORES[:1]), ids=" ".join)
def test_the_defaults_are_tried(store, outcomes_of):
    """By the checks of their groups, on a plugin that leaves to the host what it can."""
    groups = {all_checks()[check_id].group for check_id in _DEFAULTS}
    checks = [
        check
        for check in all_checks().values()
        if check.kind == "filesystem" and check.level <= Level.ROBUST and check.group in groups
    ]
    fixture, scheme = store
    target = {"scheme": scheme, "options": Options(many=20, repeat=40)}
    outcomes = outcomes_of(
        *(
            defect_job(fixture, "sparse-table", ids, Pass.HOST, **target)
            for ids in ids_by_group(checks, Pass.HOST)
        )
    )

    assert {o.check_id: o for o in outcomes.values() if o.verdict not in FINE} == {}
    assert {outcomes[check_id].verdict for check_id in _DEFAULTS} == {Verdict.PASSED}
    # A rename by copy and delete is reported.
    assert outcomes["FS-243"].verdict is Verdict.NOTED
    assert "a copy and a deletion" in outcomes["FS-243"].message
