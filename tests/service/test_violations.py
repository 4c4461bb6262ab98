"""What was found wrong is one value, with the attributes that each of its names has always had."""

from __future__ import annotations

import json
import pickle
from dataclasses import asdict

import pytest

import modular_tf as mtf
from modular_tf.errors import AlreadyExistsError
from modular_tf.rules import rule
from modular_tf.rules.filesystem import FILES_USABLE, SCHEME_FREE, scheme_pinned, scheme_taken
from modular_tf.service.why import Fact

FOUND = scheme_taken("s3", "b", "a").at("register")


def test_a_problem_a_reason_and_a_violation_are_one():
    assert mtf.Problem is mtf.Reason is mtf.Violation


def test_a_rule_equals_its_id_and_tells_what_it_demands():
    assert FOUND.rule == "FS-018" == FOUND.rule_id
    assert FOUND.rule.severity is FOUND.severity is mtf.Severity.ERROR
    assert FOUND.rule.requirement == "No other plugin serves the scheme."
    assert {"FS-018": "known"}[FOUND.rule] == "known"
    assert f"{FOUND.rule} {FOUND.rule!r}" == "FS-018 'FS-018'"


def test_a_violation_can_be_made_from_an_id():
    assert mtf.Violation("FS-018", "taken") == mtf.Violation(SCHEME_FREE, "taken")
    assert mtf.Violation("FS-020", "no read").rule is FILES_USABLE
    with pytest.raises(KeyError):
        mtf.Violation("FS-000", "there is no such rule")


def test_the_remedy_is_the_rules_unless_a_better_one_is_known():
    assert FOUND.remedy == SCHEME_FREE.remedy
    assert mtf.Violation(SCHEME_FREE, "taken", remedy="Wait.").remedy == "Wait."
    assert mtf.Violation(None, "the plugin's own word").remedy is None


def test_a_rule_that_warns_refuses_nothing_and_a_plugins_own_word_does():
    assert not mtf.Violation(FILES_USABLE, "no read").is_error
    assert mtf.Violation(None, "the plugin's own word").is_error


def test_a_message_is_bounded_and_no_terminal_obeys_it():
    said = "\x1b]0;owned\x07 \N{RIGHT-TO-LEFT OVERRIDE}\nname \udcff of a file " + "x" * 10_000_000

    found = mtf.Violation(None, said)

    begin = "\\x1b]0;owned\\x07 \\u202e\\nname \udcff of a file xxx"
    assert found.message.startswith(begin)
    assert len(found.message) == 10_000
    assert found.message.endswith(f"x... (the first of {len(said)} characters)")
    assert found.at("work").of_scheme(None) == found.at("work")


def test_what_else_a_plugin_may_write_is_bounded_too():
    said = "\x1b[2J" + "x" * 10_000_000

    found = mtf.Violation(None, "refused", remedy=said, path=said, origin=said)

    for text in (found.remedy, found.path, found.origin):
        assert text is not None
        assert len(text) == 10_000
        assert text.startswith("\\x1b[2Jxxx")
        assert text.endswith(f"x... (the first of {len(said)} characters)")


def test_a_path_is_that_of_the_file():
    path = "/plugins/\x1b[2J\n\udcff.so"

    assert mtf.Violation(None, "refused", path=path).path == path


def test_json_has_the_id_of_the_rule():
    told = {
        "stage": "register",
        "rule": "FS-018",
        "message": "scheme 's3' of b is taken by a",
        "remedy": SCHEME_FREE.remedy,
    }

    assert json.loads(json.dumps(FOUND.as_dict())) == told
    assert json.loads(json.dumps(asdict(FOUND))) == {
        **told,
        "path": None,
        "origin": None,
        "scheme": FOUND.scheme,
    }
    assert mtf.Violation(None, "its own word", "init").as_dict()["rule"] is None


def test_values_cross_a_process_border():
    again = pickle.loads(pickle.dumps(FOUND))

    assert again == FOUND
    assert again.rule.requirement == SCHEME_FREE.requirement


def test_an_error_cites_the_rule_and_gives_it_back():
    pinned = scheme_pinned("s3", "b", "a", where="the configuration")
    error = pinned.error(AlreadyExistsError, plugin="b")

    text = "scheme 's3' of b is pinned to 'a' in the configuration (rule FS-018)"
    assert (error.message, error.rule, error.plugin) == (text, "FS-018", "b")
    assert mtf.Violation.of_error(error, "register").rule is rule("FS-018")


def test_a_fact_of_a_violation_says_what_it_says():
    fact = Fact.of("scheme 's3'", FOUND, "contest", prefix="b")

    assert fact == Fact(
        "scheme 's3'", "contest", f"b: {FOUND.message}", "FS-018", SCHEME_FREE.remedy
    )
