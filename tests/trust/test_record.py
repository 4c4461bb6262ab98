"""LD-078 and LD-079: the hashes that installers leave in RECORD."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.trust.conftest import candidate

BYTES = b"what was installed"
REQUIRED = TrustPolicy(require_record=True)


def written(data=BYTES, algorithm="sha256"):
    digest = hashlib.new(algorithm, data).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


@pytest.fixture
def site(tmp_path):
    """Return a directory of installed distributions."""
    folder = tmp_path / "site"
    (folder / "spam").mkdir(parents=True)
    (folder / "spam-1.2.dist-info").mkdir()
    return folder


@pytest.fixture
def install(site):
    """Install a library, with the line that RECORD has of it."""

    def write(line, path="spam/libspam.so", data=BYTES):
        file = site / path
        file.write_bytes(data)
        content = f"spam/__init__.py,,\n{line}\nspam-1.2.dist-info/RECORD,,\n"
        (site / "spam-1.2.dist-info" / "RECORD").write_bytes(content.encode())
        return file

    return write


def verdict_on(file, site, policy=None, *, distribution="spam"):
    one_pass = TrustJudge(policy or TrustPolicy(), python_path=[str(site)])
    return one_pass.judge(candidate(file, Source.DISTRIBUTION, distribution=distribution))


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_a_file_with_the_recorded_hash_is_accepted(algorithm, install, site):
    file = install(f"spam/libspam.so,{written(algorithm=algorithm)},18")

    verdict = verdict_on(file, site)

    assert verdict.accepted
    assert verdict.rule == "LD-078"
    assert "RECORD of spam 1.2" in verdict.message


@pytest.mark.parametrize("algorithm", ["sha256", "sha512"])
def test_a_file_that_was_changed_is_refused(algorithm, install, site):
    file = install(f"spam/libspam.so,{written(algorithm=algorithm)},18", data=b"changed")

    verdict = verdict_on(file, site)

    assert not verdict.accepted
    assert verdict.rule == "LD-078"
    assert hashlib.new(algorithm, b"changed").hexdigest() in verdict.message
    assert hashlib.new(algorithm, BYTES).hexdigest() in verdict.message
    assert "force-reinstall" in verdict.refused.remedy


@pytest.mark.parametrize(
    "line",
    [
        "spam/libspam.so,,",
        "spam/libother.so,sha256=AAAA,18",
        "spam/libspam.so,md5=AAAA,18",
        "other/spam/libspam.so,sha256=AAAA,18",
        "",
    ],
    ids=["no hash", "no line", "a weak hash", "a longer path", "an editable install"],
)
def test_where_record_says_nothing_it_decides_nothing(line, install, site):
    file = install(line)

    assert verdict_on(file, site).rule == "LD-075"
    assert verdict_on(file, site).accepted
    refused = verdict_on(file, site, REQUIRED)
    assert (refused.accepted, refused.rule) == (False, "LD-079")
    assert str(file) in refused.message


def test_a_hash_may_be_required_and_there(install, site):
    file = install(f"spam/libspam.so,{written()},18")

    assert verdict_on(file, site, REQUIRED).rule == "LD-078"
    assert verdict_on(file, site, REQUIRED).accepted
    assert verdict_on(file, site, REQUIRED, distribution=None).accepted


def test_a_record_that_anybody_may_write_to_vouches_for_nothing(install, site):
    file = install(f"spam/libspam.so,{written()},18")
    (site / "spam-1.2.dist-info").chmod(0o777)

    assert verdict_on(file, site, REQUIRED).rule == "LD-079"


def test_a_weak_hash_is_told(install, site):
    file = install("spam/libspam.so,md5=AAAA,18")

    told = verdict_on(file, site)

    assert told.accepted
    assert f"the RECORD of spam 1.2 has 'md5=AAAA' of {file}, which is not used" in (told.message)
    assert "'md5=AAAA'" in verdict_on(file, site, REQUIRED).message


def test_a_weak_hash_of_a_companion_is_told(install, site):
    file = install(f"spam/libspam.so,{written()},18\nspam/libcompanion.so,md5=AAAA,18")
    companion = site / "spam" / "libcompanion.so"
    companion.write_bytes(BYTES)
    found = candidate(file, Source.DISTRIBUTION, distribution="spam")
    one_pass = TrustJudge(TrustPolicy(), python_path=[str(site)])

    verdict = one_pass.judge_companions(found, one_pass.judge(found), [str(companion)])

    assert verdict.accepted
    assert f"has 'md5=AAAA' of {companion}" in verdict.message


@pytest.mark.parametrize("text", ["", "!", "AAAAA", "AAAA", "é"])
def test_a_damaged_hash_is_not_that_of_the_file(text, install, site):
    file = install(f"spam/libspam.so,sha256={text},18")

    assert verdict_on(file, site).rule == "LD-078"
    assert not verdict_on(file, site).accepted


@pytest.mark.parametrize(
    "line",
    [
        '"spam/libspam.so",{},18',
        '"spam/libspam.so","{}",18',
        'spam/libspam.so,"{}",18',
        "./spam/libspam.so,{},18",
        "spam//libspam.so,{},18",
        "spam/./libspam.so,{},18",
        "spam/../spam/libspam.so,{},18",
        "../site/spam/libspam.so,{},18",
        "{site}/spam/libspam.so,{},18",
        '"spam/lib"spam.so,{},18',
        "spam/libspam.so, {},18",
        '"a, ""b""\nc.so",,\nspam/libspam.so,{},18',
        "spam/libspam.so,{},18\r",
        "a.py,,\rspam/libspam.so,{},18\r",
        "spam/libspam.so,{}",
        "spam/libspam.so,,\nspam/libspam.so,md5=AAAA,18\nspam/libspam.so,{},18",
    ],
)
@pytest.mark.parametrize("form", [str, lambda text: text.replace("sha256", "SHA256")])
def test_however_a_row_is_written_it_is_compared(line, form, install, site):
    line = line.replace("{site}", str(site)).replace("{}", form(written()))

    assert verdict_on(install(line), site).rule == "LD-078"
    assert verdict_on(install(line), site).accepted
    assert verdict_on(install(line, data=b"changed"), site).rule == "LD-078"
    assert not verdict_on(install(line, data=b"changed"), site).accepted


def test_each_row_of_a_file_counts(install, site):
    rows = [f"spam/libspam.so,{written()},18", f"./spam/libspam.so,{written(b'other')},18"]

    assert not verdict_on(install("\n".join(rows)), site).accepted
    assert not verdict_on(install("\n".join(reversed(rows))), site).accepted


def test_a_row_that_leads_nowhere_is_of_no_file(install, site):
    (site / "spam" / "loop").symlink_to("loop")
    rows = ["spam/loop/libspam.so", "spam\0/libspam.so", "/nowhere/libspam.so"]
    file = install("\n".join(f"{row},{written(b'other')},18" for row in rows))

    assert verdict_on(file, site).rule == "LD-075"


@pytest.mark.parametrize("name", ["lib,spam.so", 'lib"spam.so', "lib ä.so", "a\r\nlib.so"])
def test_odd_names_are_quoted_as_csv_has_it(name, install, site):
    path = f"spam/{name}"
    quoted = f'"{path.replace(chr(34), chr(34) * 2)}"' if set(',"\n') & set(name) else path
    file = install(f"{quoted},{written()},18", f"spam/{name}", b"changed")

    assert verdict_on(file, site).rule == "LD-078"
    assert not verdict_on(file, site).accepted


def test_a_site_directory_may_be_a_link(install, site, tmp_path):
    file = install(f"spam/libspam.so,{written()},18", data=b"changed")
    link = tmp_path / "by-link"
    link.symlink_to(site, target_is_directory=True)

    assert verdict_on(link / file.relative_to(site), site).rule == "LD-078"
    assert verdict_on(file, link).rule == "LD-078"


def test_companions_are_compared_too(install, site):
    file = install(f"spam/libspam.so,{written()},18\nspam/libcompanion.so,{written()},18")
    companion = site / "spam" / "libcompanion.so"
    found = candidate(file, Source.DISTRIBUTION, distribution="spam")

    companion.write_bytes(BYTES)
    one_pass = TrustJudge(TrustPolicy(), python_path=[str(site)])
    verdict = one_pass.judge_companions(found, one_pass.judge(found), [str(companion)])
    assert [seen.path for seen in verdict.checked] == [str(file), str(companion)]

    companion.write_bytes(b"changed")
    one_pass = TrustJudge(TrustPolicy(), python_path=[str(site)])
    verdict = one_pass.judge_companions(found, one_pass.judge(found), [str(companion)])
    assert (verdict.accepted, verdict.rule) == (False, "LD-078")
    assert str(companion) in verdict.message


def test_a_known_hash_is_taken_without_reading(install, site, monkeypatch):
    file = install(f"spam/libspam.so,{written()},18")
    os.utime(file, (1, 1))
    asked = []

    def known(path, identity):
        asked.append((path, identity.size))
        return hashlib.sha256(BYTES).hexdigest()

    monkeypatch.setattr("modular_tf.discovery.trust.judge.sha256_of", None)
    one_pass = TrustJudge(TrustPolicy(), python_path=[str(site)], known_sha256=known)
    verdict = one_pass.judge(candidate(file, Source.DISTRIBUTION, distribution="spam"))

    assert verdict.rule == "LD-078"
    assert verdict.accepted
    assert asked == [(str(file), len(BYTES))]
    assert verdict.checked[0].sha256 == hashlib.sha256(BYTES).hexdigest()


def test_a_file_that_changes_while_it_is_read_is_refused(install, site, monkeypatch):
    from modular_tf.discovery.trust import judge as trust_judge

    file = install(f"spam/libspam.so,{written()},18")
    read = trust_judge.sha256_of

    def change_meanwhile(fd):
        found = read(fd)
        file.write_bytes(b"changed after it was read")
        return found

    monkeypatch.setattr(trust_judge, "sha256_of", change_meanwhile)

    verdict = verdict_on(file, site)
    assert (verdict.accepted, verdict.rule) == (False, "LD-082")


@pytest.mark.parametrize("policy", [TrustPolicy(), REQUIRED])
def test_the_record_of_an_unpacked_wheel_counts(install, site, policy, tmp_path):
    file = install(f"spam/libspam.so,{written()},18")
    folder = site.rename(tmp_path / "spam.wheel")
    file = folder / file.relative_to(site)
    verdict = TrustJudge(policy).judge(candidate(file, Source.USER_DIRECTORY, distribution="spam"))
    assert (verdict.accepted, verdict.rule) == (True, "LD-078")
    assert "RECORD of spam 1.2" in verdict.message

    file.write_bytes(b"changed")

    verdict = TrustJudge(policy).judge(candidate(file, Source.USER_DIRECTORY, distribution="spam"))
    assert (verdict.accepted, verdict.rule) == (False, "LD-078")


def test_each_version_has_its_own_record(install, site, tmp_path):
    file = install(f"spam/libspam.so,{written()},18")
    folder = tmp_path / "spam.wheel"
    shutil.copytree(site, folder)
    install(f"spam/libspam.so,{written(b'another version')},18", data=b"another version")
    file = folder / file.relative_to(site)

    assert verdict_on(file, site).rule == "LD-078"

    file.write_bytes(b"another version")
    assert not verdict_on(file, site).accepted
