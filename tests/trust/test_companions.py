"""Companions are judged as their plugins are, since their code runs too."""

import pytest

from modular_tf.discovery.file_identity import see
from modular_tf.discovery.trust import judge as trust_judge
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.discovery.conftest import make_candidate
from tests.trust.conftest import (
    STRANGER,
    assert_refused,
    judge,
    judge_with_companions,
)


@pytest.mark.parametrize(
    ("part", "rule"),
    [("companion", "LD-075"), ("folder", "LD-076"), ("nothing", "LD-082"), ("plugin", "LD-075")],
)
def test_companions_are_accepted_where_they_are_ours(part, rule, library, companion, give_to):
    verdict = judge_with_companions(library, companion)
    assert verdict.accepted
    assert [seen.path for seen in verdict.checked] == [str(library), str(companion)]
    if part == "folder":
        companion.parent.chmod(0o777)
    elif part == "nothing":
        companion.unlink()
    else:
        give_to(library if part == "plugin" else companion, user=STRANGER)

    named = {"plugin": library, "folder": companion.parent}.get(part, companion)
    assert_refused(judge_with_companions(library, companion), rule, named)


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

    found = TrustJudge(TrustPolicy()).judge_opened(make_candidate(library), verdict, [opened])

    assert_refused(found, "LD-098", "it changed since it was looked at")
