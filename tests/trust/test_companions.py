"""Companions are judged as their plugins are, since their code runs too."""

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.trust import judge as trust_judge
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.trust.conftest import STRANGER, candidate, judge, judge_with_companions


def test_companions_of_ours_are_accepted(library, companion):
    verdict = judge_with_companions(library, companion)

    assert verdict.accepted
    assert [seen.path for seen in verdict.checked] == [str(library), str(companion)]


@pytest.mark.parametrize(
    ("part", "rule"), [("companion", "LD-075"), ("folder", "LD-076"), ("nothing", "LD-082")]
)
def test_a_companion_of_strangers_or_none_is_refused(part, rule, library, companion, give_to):
    if part == "companion":
        give_to(companion, user=STRANGER)
    elif part == "folder":
        companion.parent.chmod(0o777)
    else:
        companion.unlink()

    verdict = judge_with_companions(library, companion)

    assert (verdict.accepted, verdict.rule, verdict.checked) == (False, rule, ())
    assert str(companion.parent) in verdict.message


def test_a_refused_plugin_stays_refused(library, companion, give_to):
    give_to(library, user=STRANGER)

    verdict = judge_with_companions(library, companion)

    assert (verdict.accepted, verdict.rule) == (False, "LD-075")
    assert str(library) in verdict.message


def test_of_what_has_another_size_than_when_it_was_opened_nothing_is_read(
    home, library, monkeypatch
):
    """It may have become too large to be read within hours."""
    verdict, more = judge(library), home / "libmore.so"
    more.write_bytes(b"some code")
    opened = see(str(more))
    with more.open("ab") as stream:
        stream.truncate(1 << 40)
    monkeypatch.setattr(trust_judge, "sha256_of", lambda _: pytest.fail("it is read"))

    found = TrustJudge(TrustPolicy()).judge_opened(candidate(library), verdict, [opened])

    assert found.rule == "LD-098"
    assert "it changed since it was looked at" in found.message
