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
from modular_tf.check.outcome import Verdict
from modular_tf.check.report.comparison import compare, same_plugins
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
from modular_tf.codec import encode
from modular_tf.errors import ConfigError
from tests.check.report.outcomes import ALL_KINDS, CRASHED, FAILED, outcome, plugin, report

WHOLE = report(*ALL_KINDS, outdated=(KnownDeviation("FS-157", "was so"),), remarks=("a remark",))


# ---- JSON ----------------------------------------------------------------------------------------


def _written(value):
    return json.loads(json.dumps({"schema_version": SCHEMA_VERSION, **as_json(value)}))


def test_the_report_is_what_its_schema_describes():
    schema = json.loads(Path(SCHEMA_PATH).read_text())
    Draft202012Validator.check_schema(schema)
    validator, whole = Draft202012Validator(schema), _written(WHOLE)

    validator.validate(whole)
    validator.validate({**whole, "since": encode(compare(report(FAILED), WHOLE))})
    validator.validate(_written(Report(())))
    for key in ("conforms", "plugins", "summary"):
        assert not validator.is_valid({name: whole[name] for name in whole if name != key})


def test_a_report_is_read_back_whole(tmp_path):
    path = tmp_path / "report.json"
    path.write_text(json.dumps(_written(WHOLE)))

    assert read_report(str(path)) == WHOLE


@pytest.mark.parametrize(
    "text", ["", "[]", '{"schema_version": 2}', '{"schema_version": 1, "plugins": [3]}']
)
def test_what_is_no_report_is_refused(tmp_path, text):
    path = tmp_path / "report.json"
    path.write_text(text)

    with pytest.raises(ConfigError, match="is no report"):
        read_report(str(path))


# ---- JUnit ---------------------------------------------------------------------------------------


def test_junit_counts_what_it_holds():
    (suite,) = ET.fromstring(junit(WHOLE))

    assert suite.get("tests") == str(len(ALL_KINDS))
    for counter, part, number in (
        ("failures", "failure", 1),
        ("errors", "error", 3),
        ("skipped", "skipped", 3),
    ):
        assert suite.get(counter) == str(number) == str(len(suite.findall(f"testcase/{part}")))


def test_junit_has_a_suite_for_each_subject_of_each_library_and_holds_strange_names():
    def names_of_suites(value):
        return [suite.get("name") for suite in ET.fromstring(junit(value))]

    other = replace(FAILED, subject="other://")
    of_subjects = ["libmine.so: mine:// (raw)", "libmine.so: other:// (raw)"]
    assert names_of_suites(report(FAILED, other)) == of_subjects
    two = Report((plugin(FAILED), plugin(FAILED, path="/other/libmine.so")))
    assert len({*names_of_suites(two)}) == 2
    nasty = replace(FAILED, message="a\x00b\x1b[31m\udc80", subject="mi\x01ne://")
    assert len(names_of_suites(report(nasty))) == 1


# ---- Annotations ---------------------------------------------------------------------------------


def test_annotations_begin_with_the_worst_and_are_a_line_each_whatever_is_in_it():
    lines = list(github_annotations(report(*ALL_KINDS)))
    kinds = [line.split(" ")[0] for line in lines]

    assert kinds == ["::error"] * 4 + ["::warning"] * 2 + ["::notice"]
    assert not any("\n" in line for line in lines)
    (line,) = github_annotations(report(CRASHED, replace(CRASHED, check_id="FS-160")))
    assert "FS-158 (mine%3A// raw)" in line
    assert line.endswith("%0Athe same: FS-160")
    nasty = replace(FAILED, message="50% of\n::error::", subject="a:b,c")
    (line,) = github_annotations(report(nasty))
    assert "50%25 of%0A::error::" in line
    assert "a%3Ab%2Cc" in line


# ---- Text ----------------------------------------------------------------------------------------


def _text(value, *, verbose=False):
    return "\n".join(map(str, plugin_lines(value, verbose=verbose)))


def test_the_text_has_all_that_one_needs_to_act():
    text = _text(plugin(*ALL_KINDS, remarks=("a remark",)))
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
    assert _text(plugin(FAILED, replace(FAILED, subject="other://"))).count(FAILED.message) == 1
    assert "calls:    ..." in _text(plugin(replace(FAILED, calls=FAILED.calls * 9)))
    verbose = _text(plugin(*ALL_KINDS), verbose=True)
    assert all(each.check_id in verbose for each in ALL_KINDS)


def test_the_summary_is_one_line():
    line = str(summary_line(plugin(*ALL_KINDS)))

    assert line.startswith("libmine.so: does not conform; reaches ")
    assert "10 checks: 1 passed, 1 failed" in line
    cut_short = str(summary_line(plugin(outcome("FS-150", Verdict.PASSED), unanswered=3)))
    assert "is not known to conform, checks left open: 3 without an outcome;" in cut_short


# ---- Comparison ----------------------------------------------------------------------------------


def _kinds(before, after):
    """Return how many changes are better, worse, added and gone."""
    found = compare(before, after)
    return [len(changes) for changes in (found.better, found.worse, found.added, found.gone)]


def test_a_comparison_separates_better_from_worse():
    before = report(FAILED, outcome("FS-150", Verdict.PASSED), outcome("FS-151", Verdict.PASSED))
    after = report(
        replace(FAILED, verdict=Verdict.PASSED),
        outcome("FS-150", Verdict.SKIPPED),
        replace(CRASHED, check_id="FS-152"),
    )

    found = compare(before, after)
    kinds = (found.better, found.worse, found.added, found.gone)
    ids = [[change.check_id for change in changes] for changes in kinds]
    assert ids == [["FS-156"], ["FS-150"], ["FS-152"], ["FS-151"]]
    first, *_, last = map(str, comparison_lines(found))
    assert first == "worse FS-150 (libmine.so, mine:// raw): passed -> skipped"
    assert last == "since then: 1 better, 1 worse, 1 added, 1 gone"
    assert _kinds(WHOLE, WHOLE) == [0, 0, 0, 0]
    elsewhere = report(*ALL_KINDS, path="/elsewhere/libmine.so")
    assert compare(WHOLE, elsewhere) == compare(WHOLE, WHOLE)


def test_each_verdict_is_worse_than_the_one_before():
    names = ("PASSED", "NOTED", "KNOWN", "WARNED", "SKIPPED", "BLOCKED", "FAILED")
    reports = [report(outcome("FS-150", Verdict[name])) for name in names]

    for better, worse in pairwise(reports):
        assert _kinds(better, worse) == [0, 1, 0, 0]
        assert _kinds(worse, better) == [1, 0, 0, 0]


_DEBUG, _RELEASE = "/a/build-debug/libmine.so", "/a/build-release/libmine.so"


def test_two_libraries_of_one_name_are_compared_each_with_its_own():
    """A regression of one is not hidden by the other, which fails as it did before."""
    before, after = (
        Report((plugin(passed, path=_DEBUG), plugin(FAILED, path=_RELEASE)))
        for passed in (replace(FAILED, verdict=Verdict.PASSED), FAILED)
    )

    (change,) = compare(before, after).worse
    assert change.plugin == _DEBUG


@pytest.mark.parametrize(
    ("after", "same"),
    [
        ([_RELEASE], {_RELEASE: _RELEASE}),
        (["/elsewhere/libmine.so"], {}),
        (["/elsewhere/build-debug/libmine.so"], {_DEBUG: "/elsewhere/build-debug/libmine.so"}),
        ([_RELEASE, "/new/libmine.so"], {_RELEASE: _RELEASE, _DEBUG: "/new/libmine.so"}),
    ],
)
def test_plugins_are_the_same_by_the_ends_of_their_paths(after, same):
    assert same_plugins([_DEBUG, _RELEASE], after) == same


def test_own_folders_are_looked_for_in_linear_time(run_forked):
    """A plugin's last words may be a megabyte of digits."""
    run_forked("""
        from modular_tf.check.report.wording import without_own_folders
        digits = "a" * 1_000_000
        assert without_own_folders(digits) == digits
    """)
