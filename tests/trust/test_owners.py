"""LD-075: what is on the way to a plugin belongs to root, to us or to maintainers."""

import os
import pwd

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.file_identity import see
from modular_tf.discovery.trust import paths as trust_writers
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.paths import trusted_writers
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.discovery.conftest import make_candidate
from tests.trust.conftest import STRANGER, assert_refused, judge


def test_a_file_of_ours_in_a_directory_of_ours_is_accepted(library):
    verdict = judge(library)

    assert {0, os.geteuid()} <= trusted_writers(TrustPolicy()).users
    assert verdict.checked[0].path == str(library)
    known = {"stage": "trust", "rule": "LD-075", "remedy": None}
    assert verdict.as_dict() == {**known, "message": verdict.message}


@pytest.mark.parametrize("part", ["home/libx.so", "home", "."])
def test_what_belongs_to_a_stranger_is_refused_unless_named(part, library, tmp_path, give_to):
    give_to(tmp_path / part, user=STRANGER)

    verdict = judge(library)
    assert_refused(verdict, "LD-075", f"{tmp_path / part} belongs to user {STRANGER}")
    assert "owners" in verdict.as_dict()["remedy"]
    assert judge(library, TrustPolicy(owners=(STRANGER,))).accepted
    assert_refused(judge(library, TrustPolicy(owners=("nobody-has-this-name",))), "LD-075")
    bundled = TrustJudge(TrustPolicy()).judge(make_candidate(library, Source.BUNDLED))
    assert bundled.accepted
    assert "comes with this package" in bundled.message

    other = next(entry for entry in pwd.getpwall() if entry.pw_uid not in (0, os.geteuid()))
    give_to(tmp_path / part, user=other.pw_uid)
    assert_refused(judge(library), "LD-075", other.pw_name)
    assert judge(library, TrustPolicy(owners=(other.pw_name,))).accepted


def test_where_no_file_is_the_probe_has_the_word(library, home):
    (home / "libdir.so").mkdir()
    assert judge(home / "libdir.so").checked == ()
    found = make_candidate(library)
    library.unlink()

    verdict = TrustJudge(TrustPolicy()).judge(found)
    assert (verdict.accepted, verdict.checked) == (True, ())
    assert "no file" in verdict.message


def test_who_can_change_this_package_is_trusted(library, tmp_path, give_to, monkeypatch):
    """A container's packages often belong to a user of the image while root runs them."""
    package = tmp_path / "site-packages" / "modular_tf"
    package.mkdir(parents=True)
    status = os.stat_result((0o40775, 1, 1, 2, STRANGER, STRANGER, 0, 0, 0, 0))
    monkeypatch.setattr(trust_writers, "package_directories", lambda: (str(package),))
    monkeypatch.setattr(trust_writers, "_chain", lambda path: [status])
    give_to(library, user=STRANGER, group=STRANGER)
    library.chmod(0o664)

    assert judge(library).accepted


@pytest.mark.parametrize(
    ("uid_map", "expected"),
    [
        pytest.param("0 0 4294967295\n", {0}, id="no namespace"),
        pytest.param("0 1000 1\n1 100000 65536\n", {0}, id="rootless container"),
        pytest.param("1000 1000 1\n", {0, 65534}, id="namespace without root"),
        pytest.param(None, {0}, id="unknown"),
    ],
)
def test_roots_files_may_have_another_number_in_a_namespace(
    uid_map, expected, tmp_path, monkeypatch
):
    if uid_map is not None:
        (tmp_path / "uid_map").write_text(uid_map)
    (tmp_path / "overflowuid").write_text("65534\n")
    monkeypatch.setattr(trust_writers, "_UID_MAP", str(tmp_path / "uid_map"))
    monkeypatch.setattr(trust_writers, "_OVERFLOW_UID", str(tmp_path / "overflowuid"))

    assert set(trust_writers._roots()) == expected


def test_the_verdict_is_on_the_bytes_that_were_probed(library):
    seen, content = see(str(library)), library.read_bytes()
    library.write_bytes(content[::-1])
    assert_refused(TrustJudge(TrustPolicy()).judge(make_candidate(library), seen), "LD-082")

    library.write_bytes(content)
    assert TrustJudge(TrustPolicy()).judge(make_candidate(library), seen).accepted
