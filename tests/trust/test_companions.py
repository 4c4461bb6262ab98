"""Companions are judged as their plugins are, since their code runs too."""

from __future__ import annotations

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.trust import judge as trust_judge
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.trust.conftest import STRANGER, candidate, judge


@pytest.fixture
def companion(tmp_path):
    folder = tmp_path / "libs"
    folder.mkdir()
    file = folder / "libcompanion.so"
    file.write_bytes(b"some code")
    return file


def verdict_on(library, *companions):
    one_pass = TrustJudge(TrustPolicy())
    found = candidate(library)
    return one_pass.judge_companions(found, one_pass.judge(found), list(map(str, companions)))


def test_companions_of_ours_are_accepted(library, companion):
    verdict = verdict_on(library, companion)

    assert verdict.accepted
    assert [seen.path for seen in verdict.checked] == [str(library), str(companion)]


def test_a_companion_of_a_stranger_is_refused(library, companion, give_to):
    give_to(companion, user=STRANGER)

    verdict = verdict_on(library, companion)

    assert (verdict.accepted, verdict.rule) == (False, "LD-075")
    assert str(companion) in verdict.message
    assert verdict.checked == ()


def test_a_companion_in_a_directory_that_anybody_may_write_to_is_refused(library, companion):
    companion.parent.chmod(0o777)

    assert verdict_on(library, companion).rule == "LD-076"


def test_a_companion_that_is_gone_is_refused(library, companion):
    companion.unlink()

    verdict = verdict_on(library, companion)

    assert (verdict.accepted, verdict.rule) == (False, "LD-082")


def test_a_refused_plugin_stays_refused(library, companion, give_to):
    give_to(library, user=STRANGER)

    assert verdict_on(library, companion).rule == "LD-075"
    assert str(library) in verdict_on(library, companion).message


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
