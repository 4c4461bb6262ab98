"""What was found wrong is one value, with the attributes that each of its names has always had."""

from __future__ import annotations

import json
import pickle

import pytest

import modular_tf as mtf
from modular_tf.errors import AlreadyExistsError
from modular_tf.rules import rule
from modular_tf.rules.filesystem import FILES_USABLE, SCHEME_FREE, scheme_pinned, scheme_taken

FOUND = scheme_taken("s3", "b", "a").at("register")


def test_a_rule_equals_its_id_and_has_what_it_demands():
    assert mtf.Problem is mtf.Reason is mtf.Violation
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


@pytest.mark.parametrize("field", ["message", "remedy", "path", "origin"])
def test_what_a_plugin_may_write_is_bounded_and_no_terminal_obeys_it(field):
    said = "\x1b]0;owned\x07 \N{RIGHT-TO-LEFT OVERRIDE}\nname \udcff of a file " + "x" * 1_000_000

    found = getattr(mtf.Violation(None, **{"message": "refused", field: said}), field)

    assert found.startswith("\\x1b]0;owned\\x07 \\u202e\\nname \udcff of a file xxx")
    assert len(found) == 10_000
    assert found.endswith(f"x... (the first of {len(said)} characters)")


def test_a_path_is_that_of_the_file():
    path = "/plugins/\x1b[2J\n\udcff.so"

    assert mtf.Violation(None, "refused", path=path).path == path


def test_json_has_the_id_of_the_rule_and_a_pickle_the_rule():
    told = {
        "stage": "register",
        "rule": "FS-018",
        "message": "scheme 's3' of b is taken by a",
        "remedy": SCHEME_FREE.remedy,
    }

    assert json.loads(json.dumps(FOUND.as_dict())) == told
    again = pickle.loads(pickle.dumps(FOUND))
    assert (again, again.rule.requirement) == (FOUND, SCHEME_FREE.requirement)
    assert mtf.Violation(None, "its own word", "init").as_dict()["rule"] is None


def test_an_error_cites_the_rule_and_gives_it_back():
    pinned = scheme_pinned("s3", "b", "a", where="the configuration")
    error = pinned.error(AlreadyExistsError, plugin="b")

    text = "scheme 's3' of b is pinned to 'a' in the configuration (rule FS-018)"
    assert (error.message, error.rule, error.plugin) == (text, "FS-018", "b")
    assert mtf.Violation.of_error(error, "register").rule is rule("FS-018")
