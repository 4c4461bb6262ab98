"""What an author decides: the settings file, profiles, which checks are tried, what is excused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from modular_tf.check import settings
from modular_tf.check.catalogue import all_checks, all_rules
from modular_tf.check.level import Level
from modular_tf.check.outcome import Verdict
from modular_tf.check.plan import selected
from modular_tf.check.pytest_plugin import settings_for
from modular_tf.check.settings import (
    DEFAULT_PROFILE,
    FILE_NAME,
    TRAITS,
    CheckSettings,
    KnownDeviation,
    Profile,
    bundled_profile,
    decided,
    find_settings,
    profile_names,
)
from modular_tf.errors import ConfigError
from tests.check.named_checks import assert_tells_what_it_means, ids_in
from tests.check.report.outcomes import outcome

KINDS = ("filesystem", "device", "kernel")
_ROOT = Path(__file__).parents[2]
_CHECKS = all_checks().values()


@pytest.fixture
def settings_of(tmp_path):
    def load(text, **given):
        path = tmp_path / FILE_NAME
        path.write_text(text)
        return decided("", path=str(path), **given)

    return load


# ---- The file ------------------------------------------------------------------------------------


def test_a_whole_file_is_read(settings_of):
    found = settings_of("""
        level = 3
        profile = "mine"
        root = "mine://scratch"
        skip = ["FS-156"]
        [options]
        repeat = 50
        [[known]]
        check = "FS-157"
        subject = "mine://"
        reason = "so it is"
        [profiles.mine]
        like = "object-store"
        [profiles.mine.traits]
        append = "skip"
    """)

    assert (found.level, found.root, found.skip) == (Level.WORKS, "mine://scratch", ("FS-156",))
    assert found.options == {"repeat": 50}
    assert found.known == (KnownDeviation("FS-157", "so it is", "mine://"),)
    assert found.profile.excuse(frozenset({"append"})) == "skip"
    assert found.profile.excuse(frozenset({"parents"})) == "note"
    assert found.profile.excuse(frozenset({"parents", "append"})) == "skip"


def test_the_published_sample_names_what_it_means(settings_of):
    text = settings.__doc__.split("```toml\n")[1].split("```")[0]
    found = settings_of(text)

    (known,) = found.known
    assert_tells_what_it_means(known, text)
    assert all_checks()[known.check_id].level <= found.level
    assert selected(found, KINDS)  # what it skips is there
    assert ids_in(settings.__doc__) <= all_checks().keys()


def test_every_check_that_a_page_names_is_there():
    pages = [*_ROOT.joinpath("docs").rglob("*.md"), *_ROOT.glob("*.md")]
    named = {page.name: ids_in(page.read_text("utf-8")) - all_rules().keys() for page in pages}

    assert {name: ids for name, ids in named.items() if ids and name != "CHANGELOG.md"} == {}


def test_an_empty_file_decides_nothing_and_the_command_line_may_name_a_profile(settings_of):
    assert replace(settings_of(""), path=None, again=()) == CheckSettings()
    assert settings_of("profile = 'object-store'", profile="read-only").profile.name == "read-only"


@pytest.mark.parametrize(
    ("text", "about"),
    [
        ("levle = 3", "unknown keys"),
        ("level = 6", "expected a whole number from 1 to 5"),
        ("profile = 'none'", "no profile 'none'"),
        ("skip = [3]", "expected a list of strings"),
        ("[[known]]\ncheck = 'FS-999'\nreason = 'r'", "expected the id of one"),
        ("[[known]]\ncheck = 'FS-156'\nreason = ' '", "needs a reason"),
        ("profile = 'm'\n[profiles]\nm = 3", "expected a table"),
        ("profile = 'm'\n[profiles.m.traits]\nwings = 'skip'", r"traits: unknown keys \['wings'\]"),
        ("profile = 'm'\n[profiles.m.traits]\nparents = 'forgive'", "expected one of"),
        ("profile = 'm'\n[profiles.m.options]\nmany = 'all'", "many: expected a whole number"),
        ("[options]\nreapeat = 3", "did you mean repeat"),
        ("[options]\nschemes = 'ram'", "schemes: expected .*, found"),
        ("[options]\nload_seconds = inf", "load_seconds: expected .*, found"),
        ("[options]\nprepared = 1", "prepared: expected .*, found"),
        ("=", "cannot be read as TOML"),
    ],
)
def test_a_wrong_file_is_refused_with_the_reason(settings_of, text, about):
    with pytest.raises(ConfigError, match=about):
        settings_of(text)


def test_the_nearest_file_above_is_found_and_one_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        decided("", path=str(tmp_path / "none.toml"))
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    (tmp_path / FILE_NAME).touch()

    assert find_settings(str(below)) == str(tmp_path / FILE_NAME)
    (tmp_path / "a" / FILE_NAME).touch()
    assert find_settings(str(below)) == str(tmp_path / "a" / FILE_NAME)


# ---- Options of checks ---------------------------------------------------------------------------


def test_options_of_a_test_class_are_looked_at_too(tmp_path):
    with pytest.raises(ConfigError, match="repeat: expected a whole number"):
        settings_for(str(tmp_path), options={"repeat": "often"})
    assert settings_for(str(tmp_path), options={"repeat": 3}).options == {"repeat": 3}


# ---- Profiles ------------------------------------------------------------------------------------


def test_the_default_profile_excuses_nothing():
    assert profile_names()[0] == DEFAULT_PROFILE
    assert bundled_profile(DEFAULT_PROFILE).excuse(frozenset(TRAITS)) is None
    assert {trait for check in _CHECKS for trait in check.traits} == {*TRAITS}
    assert [bundled_profile(name).name for name in profile_names()] == profile_names()


# ---- Selection -----------------------------------------------------------------------------------


def _ids(**values):
    return {check.id for check in selected(replace(CheckSettings(), **values), KINDS)}


def test_a_level_takes_those_below_with_it():
    for level in Level:
        assert _ids(level=level) == {check.id for check in _CHECKS if check.level <= level} != set()


def test_checks_of_loading_concern_plugins_of_each_kind():
    chosen = {check.id: check.kind for check in selected(CheckSettings(), ("device",))}

    assert {*chosen.values()} == {"library", "device"}
    assert {"LD-001", "LD-050", "LD-060"} <= chosen.keys()
    assert not {"LD-051", "LD-052"} & chosen.keys()  # on TF_InitPlugin


def test_a_name_is_an_id_a_group_or_a_glob():
    group = all_checks()["FS-156"].group

    assert _ids(only=("FS-156",)) == {"FS-156"}
    assert _ids(only=("fs-156",), level=Level.LOADS) == {"FS-156"}  # at any level
    assert _ids(only=("FS-156",), skip=("FS-156",)) == set()
    assert "FS-156" in _ids(only=(group,))
    assert {"FS-156", "FS-157"} <= _ids(only=("FS-15?",))
    assert "FS-156" not in _ids(skip=(group,))


def test_a_group_is_tried_up_to_the_level_unless_it_is_of_a_higher_one_alone():
    load = {check.id: check.level for check in _CHECKS if check.group == "load"}
    robust = {check_id for check_id, level in load.items() if level <= Level.ROBUST}

    assert Level.HARD in load.values()
    assert _ids(only=("load",)) == robust
    assert _ids(only=("load",), level=Level.HARD) == set(load)
    assert _ids(only=("load", "FS-321")) == robust | {"FS-321"}
    assert _ids(only=("sequences",)) == {"FS-320", "SE-300"}


@pytest.mark.parametrize("key", ["only", "skip"])
def test_a_name_that_matches_nothing_is_an_error(key):
    with pytest.raises(ConfigError, match="no check and no group of checks is named 'FS-9'"):
        _ids(**{key: ("FS-9",)})


def test_a_profile_leaves_out_what_it_skips():
    profile = bundled_profile("read-only")
    left_out = _ids(level=Level.HARD) - _ids(level=Level.HARD, profile=profile)

    assert left_out == {c.id for c in _CHECKS if profile.excuse(c.traits) == "skip"} != set()
    reading = {check.id for check in _CHECKS if check.group == "reading"}
    assert _ids(only=("reading",), profile=profile) == reading & _ids(profile=profile)


# ---- Excuses -------------------------------------------------------------------------------------


def test_a_profile_makes_a_note_of_a_wrong_answer_and_not_of_a_crash():
    check_id = next(check.id for check in _CHECKS if "parents" in check.traits)
    settings = CheckSettings(profile=Profile("p", traits={"parents": "note"}))

    assert settings.excused(outcome(check_id, Verdict.FAILED)).verdict is Verdict.NOTED
    assert settings.excused(outcome(check_id, Verdict.CRASHED)).verdict is Verdict.CRASHED
    assert settings.excused(outcome(check_id, Verdict.PASSED)).verdict is Verdict.PASSED
    assert settings.excused(outcome("FS-156", Verdict.FAILED)).verdict is Verdict.FAILED


@pytest.mark.parametrize("verdict", [Verdict.CRASHED, Verdict.WARNED])
def test_a_known_deviation_may_be_any(verdict):
    settings = CheckSettings(known=(KnownDeviation("FS-156", "because", "mine://"),))

    found = settings.excused(outcome("FS-156", verdict))

    assert (found.verdict, found.reason) == (Verdict.KNOWN, "because")
    assert settings.excused(outcome("FS-156", verdict, subject="b://")).verdict is verdict
    assert settings.excused(outcome("FS-157", verdict)).verdict is verdict


def test_a_known_deviation_that_passed_everywhere_is_outdated():
    known = KnownDeviation("FS-156", "because")
    passed, failed = outcome("FS-156", Verdict.PASSED), outcome("FS-156", Verdict.FAILED)

    assert CheckSettings(known=(known,)).outdated([passed]) == [known]
    assert CheckSettings(known=(known,)).outdated([passed, failed]) == []
    assert CheckSettings(known=(known,)).outdated([]) == []
