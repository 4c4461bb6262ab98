"""Kernels are answered as TensorFlow answers them: one probe library, recorded there and run here.

`oracle/answers-2.21.json` is what TensorFlow said (`scripts/record_kernel_oracle`). What this host
says otherwise stands with its reason in `oracle/differences.toml`.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.kernel.oracle import records
from tests.kernel.oracle.building import FOLDER, build_probe
from tests.kernel.oracle.scenarios import SCENARIOS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RECORDED = json.loads((FOLDER / "answers-2.21.json").read_text(encoding="utf-8"))
DIFFERENCES = tomllib.loads((FOLDER / "differences.toml").read_text(encoding="utf-8"))["difference"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """What this host answers, in one process for all scenarios."""
    log = tmp_path_factory.mktemp("oracle") / "answers.txt"
    command = [sys.executable, FOLDER / "in_this_host.py", build_probe(), log]
    subprocess.run(command, cwd=log.parent, check=True)
    return records.read(log)


def test_every_scenario_was_recorded():
    names = {scenario.name for scenario in SCENARIOS}
    assert names | {records.REGISTRATION, records.END} == set(RECORDED)


def test_every_answer_is_tensorflows_or_a_listed_difference(answers):
    unexpected = [
        f"{scenario} | {call}: TensorFlow {recorded!r}, here {found!r}"
        for scenario, call, recorded, found in _differing(answers)
        if _listed(scenario, call, found) is None
    ]
    assert not unexpected, "\n".join(unexpected)


def test_every_listed_difference_is_one(answers):
    needed = [_listed(scenario, call, found) for scenario, call, _, found in _differing(answers)]
    assert [each for each in DIFFERENCES if each not in needed] == []


def test_failures_say_what_is_wrong(answers):
    silent = [
        f"{scenario} | {call}"
        for scenario, calls in answers.items()
        for call, answer in calls.items()
        if answer.partition(" ")[0] in records.CODES[1:] and " -- " not in answer
    ]
    assert silent == []


def _differing(answers):
    for scenario, recorded in RECORDED.items():
        theirs = records.without_texts(recorded)
        ours = records.without_texts(answers.get(scenario, {}))
        for call in dict.fromkeys([*theirs, *ours]):
            if theirs.get(call) != ours.get(call):
                yield scenario, call, theirs.get(call), ours.get(call)


def _listed(scenario, call, found):
    """Return the row that lists a difference; a call that this host does not make is `absent`."""
    shown = "absent" if found is None else found
    for row in DIFFERENCES:
        patterns = (row["scenario"], row["call"], row["here"])
        if all(map(_fits, (scenario, call, shown), patterns)):
            return row
    return None


def _fits(text, pattern):
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
