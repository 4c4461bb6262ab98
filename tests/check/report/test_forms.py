"""The forms of a report: text, JSON by its schema, JUnit XML, annotations, a comparison."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from jsonschema import Draft202012Validator

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Outcome, Verdict
from modular_tf.check.report.comparison import Change, Comparison, compare, same_plugins
from modular_tf.check.report.json_report import (
    SCHEMA_PATH,
    SCHEMA_VERSION,
    as_json,
    read_report,
)
from modular_tf.check.report.junit import junit
from modular_tf.check.report.report import Report
from modular_tf.check.report.text import (
    comparison_lines,
    github_annotations,
    plugin_lines,
    summary_line,
)
from modular_tf.check.settings import KnownDeviation
from modular_tf.codec import decode, encode
from modular_tf.errors import ConfigError
from tests.check.report.outcomes import ALL_KINDS, CRASHED, FAILED, outcome, plugin, report

WHOLE = report(*ALL_KINDS, outdated=(KnownDeviation("FS-157", "was so"),), remarks=("a remark",))


def _written(value: Report) -> dict:
    return json.loads(json.dumps({"schema_version": SCHEMA_VERSION, **as_json(value)}))


def _validator() -> Draft202012Validator:
    schema = json.loads(Path(SCHEMA_PATH).read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


# ---- JSON ----------------------------------------------------------------------------------------


def test_the_report_is_what_its_schema_says():
    compared = {"since": encode(compare(report(FAILED), WHOLE))}

    _validator().validate(_written(WHOLE))
    _validator().validate({**_written(WHOLE), **compared})
    _validator().validate(_written(Report(())))


@pytest.mark.parametrize("key", ["conforms", "plugins", "summary"])
def test_the_schema_asks_for_what_there_is(key):
    value = _written(WHOLE)
    del value[key]

    assert not _validator().is_valid(value)


def test_a_report_is_read_back_whole(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(_written(WHOLE)))

    assert read_report(str(path)) == WHOLE


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema_version": 2}', '{"schema_version": 1, "plugins": [3]}']
)
def test_what_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)

    with pytest.raises(ConfigError, match="is no report"):
        read_report(str(path))


@pytest.mark.parametrize("key", ["reached", "verdict", "incident", "calls"])
def test_an_outcome_of_another_shape_is_refused(key):
    with pytest.raises(ValueError, match=f"{key}: expected "):
        decode(Outcome, {**encode(FAILED), key: 3})


# ---- JUnit ---------------------------------------------------------------------------------------


def test_junit_counts_what_it_holds():
    suites = ET.fromstring(junit(WHOLE))
    (suite,) = suites

    assert suite.get("tests") == str(len(ALL_KINDS)) == str(len(suite.findall("testcase")))
    assert suite.get("failures") == "1" == str(len(suite.findall("testcase/failure")))
    assert suite.get("errors") == "3" == str(len(suite.findall("testcase/error")))
    assert suite.get("skipped") == "3" == str(len(suite.findall("testcase/skipped")))
    assert "SIGSEGV" in suite.find("testcase/error").get("message")


def test_junit_has_a_suite_for_each_subject():
    other = replace(FAILED, subject="other://")

    names = [suite.get("name") for suite in ET.fromstring(junit(report(FAILED, other)))]

    assert names == ["libmine.so: mine:// (raw)", "libmine.so: other:// (raw)"]


def test_junit_tells_two_libraries_of_one_name_apart():
    two = Report((plugin(FAILED), plugin(FAILED, path="/other/libmine.so")))

    names = [suite.get("name") for suite in ET.fromstring(junit(two))]

    assert len(set(names)) == len(names) == 2


def test_junit_holds_what_xml_cannot():
    nasty = replace(FAILED, message="a\x00b\x1b[31m\udc80", subject="mi\x01ne://")

    ET.fromstring(junit(report(nasty)))


# ---- Annotations ---------------------------------------------------------------------------------


def test_annotations_begin_with_the_worst_and_are_a_line_each():
    lines = list(github_annotations(report(*ALL_KINDS)))
    kinds = [line.split(" ")[0] for line in lines]

    assert kinds == ["::error"] * 4 + ["::warning"] * 2 + ["::notice"]
    assert not any("\n" in line for line in lines)


def test_a_crash_of_many_checks_is_one_annotation():
    (line,) = github_annotations(report(CRASHED, replace(CRASHED, check_id="FS-160")))

    assert "FS-158 (mine%3A// raw)" in line
    assert line.endswith("%0Athe same: FS-160")


def test_annotations_escape_what_would_end_them():
    nasty = replace(FAILED, message="50% of\n::error::", subject="a:b,c")

    (line,) = github_annotations(report(nasty))

    assert "50%25 of%0A::error::" in line
    assert "a%3Ab%2Cc" in line


# ---- Text ----------------------------------------------------------------------------------------


def test_the_text_says_all_that_one_needs_to_act():
    text = "\n".join(
        map(str, plugin_lines(plugin(*ALL_KINDS, remarks=("a remark",)), verbose=False))
    )
    rule = all_checks()["FS-156"].rule

    for needed in (
        rule.requirement, rule.remedy, FAILED.message, FAILED.expected, FAILED.found,
        *FAILED.calls, "mine_read+0x1a", "about to fall", "SIGSEGV (signal 11)", "a remark",
        "--only FS-156 --seed 7 /plugins/libmine.so", "did not return in read(file1) within 30",
        "exit status 3", "known deviation: the store says so", "blocked FS-152: create_dir failed",
    ):  # fmt: skip
        assert needed in text
    assert "FS-150" not in text
    assert "FS-193" not in text


def test_the_text_says_where_calls_are_left_out():
    shown = [str(line) for line in plugin_lines(_of_calls(16), verbose=False)]
    cut = [str(line) for line in plugin_lines(_of_calls(17), verbose=False)]

    assert any("calls:    stat('mine://0')" in line for line in shown)
    assert any("calls:    ..." in line for line in cut)
    assert any("stat('mine://1')" in line for line in cut)
    assert not any("stat('mine://0')" in line for line in cut)


def _of_calls(number):
    return plugin(replace(FAILED, calls=tuple(f"stat('mine://{at}')" for at in range(number))))


def test_verbose_text_names_every_check():
    text = "\n".join(map(str, plugin_lines(plugin(*ALL_KINDS), verbose=True)))

    assert all(each.check_id in text for each in ALL_KINDS)


def test_only_words_of_the_report_itself_have_a_style():
    said = replace(FAILED, message="FAILED", expected="remedy: FAILED")
    styled = [(line.style, line.word) for line in plugin_lines(plugin(said), verbose=False)]

    assert styled.count(("bad", "FAILED")) == 1
    assert styled.count(("label", "remedy:")) == 1
    assert {style for style, _ in styled} == {"", "bad", "label"}


def test_the_same_finding_is_told_once():
    twice = [FAILED, replace(FAILED, subject="other://")]

    text = "\n".join(map(str, plugin_lines(plugin(*twice), verbose=False)))

    assert text.count(FAILED.message) == 1
    assert "mine:// raw, other:// raw" in text


def test_the_summary_is_one_line():
    line = str(summary_line(plugin(*ALL_KINDS)))

    assert line.startswith("libmine.so: does not conform; reaches ")
    assert "10 checks: 1 passed, 1 failed" in line
    cut_short = plugin(outcome("FS-150", Verdict.PASSED), unanswered=3)
    assert "is not known to conform, checks left open: 3 without an outcome;" in str(
        summary_line(cut_short)
    )
    assert str(summary_line(plugin())) == "libmine.so: nothing was checked"


# ---- Comparison ----------------------------------------------------------------------------------


def test_a_comparison_tells_better_from_worse():
    before = report(FAILED, outcome("FS-150", Verdict.PASSED), outcome("FS-151", Verdict.PASSED))
    after = report(
        replace(FAILED, verdict=Verdict.PASSED),
        outcome("FS-150", Verdict.SKIPPED),
        replace(CRASHED, check_id="FS-152"),
    )

    found = compare(before, after)

    assert [change.check_id for change in found.better] == ["FS-156"]
    assert [change.check_id for change in found.worse] == ["FS-150"]
    assert [change.check_id for change in found.added] == ["FS-152"]
    assert [change.check_id for change in found.gone] == ["FS-151"]
    assert (
        str(list(comparison_lines(found))[-1]) == "since then: 1 better, 1 worse, 1 added, 1 gone"
    )
    assert str(next(iter(comparison_lines(found)))) == (
        "worse FS-150 (libmine.so, mine:// raw): passed -> skipped"
    )


_FROM_GOOD_TO_BAD = ("PASSED", "NOTED", "KNOWN", "WARNED", "SKIPPED", "BLOCKED", "FAILED")


@pytest.mark.parametrize(("good", "bad"), list(pairwise(_FROM_GOOD_TO_BAD)))
def test_each_verdict_is_worse_than_the_one_before(good: str, bad: str):
    better, worse = (report(outcome("FS-150", Verdict[name])) for name in (good, bad))

    assert [len(found) for found in _kinds(compare(better, worse))] == [0, 1, 0, 0]
    assert [len(found) for found in _kinds(compare(worse, better))] == [1, 0, 0, 0]


def _kinds(found: Comparison) -> tuple[tuple[Change, ...], ...]:
    return found.better, found.worse, found.added, found.gone


def test_a_run_compared_with_itself_has_no_change():
    found = compare(WHOLE, WHOLE)

    assert not any((found.better, found.worse, found.added, found.gone))


def test_another_folder_is_the_same_plugin():
    elsewhere = report(*ALL_KINDS, path="/elsewhere/libmine.so")

    assert compare(WHOLE, elsewhere) == compare(WHOLE, WHOLE)


_DEBUG, _RELEASE = "/a/build-debug/libmine.so", "/a/build-release/libmine.so"


def _of(path: str, verdict: Verdict):
    return plugin(outcome("FS-150", verdict), path=path)


def test_two_libraries_of_one_name_are_compared_each_with_its_own():
    """A regression of one is not hidden by the other, which fails as it did before."""
    before = Report((_of(_DEBUG, Verdict.PASSED), _of(_RELEASE, Verdict.FAILED)))
    after = Report((_of(_DEBUG, Verdict.FAILED), _of(_RELEASE, Verdict.FAILED)))

    found = compare(before, after)

    assert [len(changes) for changes in _kinds(found)] == [0, 1, 0, 0]
    assert found.worse[0].plugin == _DEBUG
    moved = Report(
        tuple(replace(each, path=each.path.replace("/a/", "/b/c/")) for each in after.plugins)
    )
    assert [len(changes) for changes in _kinds(compare(before, moved))] == [0, 1, 0, 0]


def test_what_could_be_one_library_or_another_is_neither():
    before = Report(
        (_of("/a/x/libmine.so", Verdict.PASSED), _of("/a/y/libmine.so", Verdict.PASSED))
    )
    after = Report((_of("/b/u/libmine.so", Verdict.FAILED), _of("/b/v/libmine.so", Verdict.PASSED)))

    assert [len(changes) for changes in _kinds(compare(before, after))] == [0, 0, 2, 2]


@pytest.mark.parametrize(
    ("after", "same"),
    [
        ([_RELEASE], {_RELEASE: _RELEASE}),
        (["/elsewhere/libmine.so"], {}),
        (["/elsewhere/build-debug/libmine.so"], {_DEBUG: "/elsewhere/build-debug/libmine.so"}),
        ([_RELEASE, "/new/libmine.so"], {_RELEASE: _RELEASE, _DEBUG: "/new/libmine.so"}),
        ([], {}),
    ],
)
def test_plugins_are_the_same_by_the_ends_of_their_paths(after, same):
    assert same_plugins([_DEBUG, _RELEASE], after) == same


def test_own_folders_are_looked_for_in_linear_time(run_python):
    """A plugin's last words may be a megabyte of digits."""
    run_python("""
        from modular_tf.check.report.wording import without_own_folders
        digits = "a" * 1_000_000
        assert without_own_folders(digits) == digits
        assert without_own_folders(f"ram://{'a' * 16}-7/FS-156-1/x") == "ram://…/x"
    """)
