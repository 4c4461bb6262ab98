"""Many filesystem plugins are tried together, and each of them alone where anything is amiss."""

from __future__ import annotations

import shutil

import pytest

from modular_tf.first_contact.batch import Batch
from modular_tf.first_contact.limits import Limits
from modular_tf.first_contact.task import Task
from modular_tf.first_contact.trials import try_plugins
from modular_tf.first_contact.zygote_process import Zygotes

MANY = 60
LIMITS = Limits(seconds=20)


@pytest.fixture
def good(fixture_plugin, tmp_path):
    """Tasks of many plugins that do no harm, and a way to replace one of them."""
    original = fixture_plugin("needed-none", scheme="grouped")
    tasks = []
    for number in range(MANY):
        path = tmp_path / f"libgood_{number}.so"
        shutil.copyfile(original, path)
        tasks.append(Task(f"good_{number}", str(path), kinds=("filesystem",)))
    return tasks


def sizes_of_groups(tasks):
    batch = Batch(tasks, LIMITS, Zygotes(LIMITS), None)
    return [len(group) for group in batch._waiting]


def test_many_share_processes_and_few_do_not(good):
    assert max(sizes_of_groups(good)) > 1
    assert sum(sizes_of_groups(good)) == MANY
    assert set(sizes_of_groups(good[:4])) == {1}


def test_devices_are_alone(good):
    devices = [Task(task.plugin, task.file, kinds=("device",)) for task in good]
    both = [Task(task.plugin, task.file, kinds=("filesystem", "device")) for task in good]

    assert set(sizes_of_groups(devices)) == {1}
    assert set(sizes_of_groups(both)) == {1}


def test_each_of_a_group_has_its_own_finding(good):
    findings = try_plugins(good, LIMITS)

    assert [finding.incident for finding in findings] == [None] * MANY
    assert {finding.offer.schemes for finding in findings} == {("grouped",)}
    assert [finding.notes for finding in findings] == [()] * MANY


@pytest.mark.parametrize(
    ("variant", "rule"),
    [
        ("init-plugin-crashes", "LD-060"),
        ("init-plugin-exits", "LD-060"),
        ("init-plugin-aborts", "LD-060"),
        ("init-plugin-hangs", "LD-061"),
    ],
)
def test_one_that_does_harm_is_found_among_many(good, fixture_plugin, variant, rule):
    shutil.copyfile(fixture_plugin(variant), good[17].file)
    findings = try_plugins(good, Limits(seconds=3))
    harmed = {n: f.incident.violation.rule_id for n, f in enumerate(findings) if f.incident}

    assert harmed == {17: rule}
    assert all(f.offer.schemes == ("grouped",) for f in findings if f.incident is None)


def test_what_breaks_rules_is_told_of_its_own_plugin(good, fixture_plugin):
    shutil.copyfile(fixture_plugin("filesystem-size-0"), good[30].file)
    findings = try_plugins(good, LIMITS)

    assert [n for n, finding in enumerate(findings) if finding.notes] == [30]
    assert findings[30].offer.schemes == ()
