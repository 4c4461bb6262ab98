"""Each plugin has a process of its own, so none has a say in what is found of another."""

import json
import shutil
from pathlib import Path

import pytest

import modular_tf
from modular_tf.first_contact.finding import Limits
from modular_tf.first_contact.trials import try_plugins
from modular_tf.loading.task import Task
from modular_tf.service.storage.quarantine import QuarantineStore
from tests.fixtures.compiler import compile_object, link_library

MANY = 24
LIMITS = Limits(seconds=20)


@pytest.fixture
def good(fixture_plugin, tmp_path):
    """Tasks of many plugins that do no harm, each a file of its own that a test may replace."""
    original = fixture_plugin("needed-none", scheme="good")
    tasks = []
    (tmp_path / "plugins").mkdir()
    for number in range(MANY):
        path = tmp_path / "plugins" / f"libgood_{number:02}.so"
        shutil.copyfile(original, path)
        tasks.append(Task(f"good_{number:02}", str(path), kinds=("filesystem",)))
    return tasks


@pytest.fixture
def good_beside_a_forger(good, fixture_plugin):
    """The same, of which the first reports in the place of all in its process, and one crashes."""
    source = Path(__file__).with_name("forger.c")
    forger = link_library("libforger.so", [compile_object(source)], ["-ldl"])
    shutil.copyfile(forger, good[0].file)
    shutil.copyfile(fixture_plugin("init-plugin-crashes"), good[1].file)
    return good


def test_nobody_reports_for_another(good_beside_a_forger):
    forged, crashed, *others = try_plugins(good_beside_a_forger, LIMITS)

    assert forged.offer.schemes == ("forged",)  # of itself it may say what it wants
    assert crashed.incident.violation.rule_id == "LD-060"
    assert {finding.offer.schemes for finding in others} == {("good",)}


_LISTED = """
    import json, sys
    from modular_tf import Config, PluginService
    config = Config(first_contact_timeout_s=10.0)
    with PluginService(plugin_dirs=sys.argv[1:], config=config) as service:
        print(json.dumps({p.name: p.state.value for p in service.load().plugins}))
"""


def test_a_crash_beside_a_forger_is_not_stored_as_harmless(good_beside_a_forger, run_python):
    folder = Path(good_beside_a_forger[0].file).parent
    for _ in range(2):  # as it is found, and as it is stored
        states = json.loads(run_python(_LISTED, folder).stdout)

        assert states["good_01"] == "quarantined"
        assert states["good_02"] == "loaded"
    kept_out = {
        e.name: e.incident.violation.rule_id for e in QuarantineStore.of_process().entries()
    }
    assert kept_out == {"good_00": "LD-146", "good_01": "LD-060"}  # the forger ends out of order


def test_nobody_reports_for_another_process(misdeed, monkeypatch):
    """A process can open the pipes of another one of its user."""
    monkeypatch.setattr("modular_tf.processes.zygote_process._SECLUDES", False)
    tasks = [Task(deed, str(misdeed(deed))) for deed in ("FORGE_SIBLINGS", "HANG")]
    _, hung = try_plugins(tasks, Limits(seconds=6))

    assert hung.incident.violation.rule_id == "LD-061"


def test_each_of_many_has_its_own_finding(good, fixture_plugin):
    harm = {
        3: ("init-plugin-crashes", "LD-060"),
        7: ("init-plugin-exits", "LD-060"),
        11: ("init-plugin-aborts", "LD-060"),
        17: ("init-plugin-hangs", "LD-061"),
    }
    broken = 20
    for number, (variant, _) in {**harm, broken: ("filesystem-size-0", None)}.items():
        shutil.copyfile(fixture_plugin(variant), good[number].file)
    findings = try_plugins(good, Limits(seconds=3))

    found = {n: f.incident.violation.rule_id for n, f in enumerate(findings) if f.incident}
    assert found == {number: rule for number, (_, rule) in harm.items()}
    assert [number for number, finding in enumerate(findings) if finding.notes] == [broken]
    assert findings[broken].offer.schemes == ()
    others = [f for n, f in enumerate(findings) if n not in harm and n != broken]
    assert {finding.offer.schemes for finding in others} == {("good",)}


def test_what_warmed_the_process_up_is_tried_like_any_other(tmp_path):
    """The process that trials are forked from has tried a plugin of our own already."""
    (folder,) = (path for path in modular_tf.__path__ if Path(path, "plugins").is_dir())
    own = Path(folder, "plugins", "libposix_filesystem.so")
    copy = shutil.copy(own, tmp_path / own.name)
    found = try_plugins(
        [Task("own", str(file), kinds=("filesystem",)) for file in (own, copy)], LIMITS
    )

    assert [(finding.incident, finding.offer.schemes) for finding in found] == [
        (None, ("", "file"))
    ] * 2
