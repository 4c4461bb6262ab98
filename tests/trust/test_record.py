"""LD-078 and LD-079: the hashes that installers leave in RECORD."""

import base64
import hashlib
import shutil

import pytest

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.trust import judge as trust_judge
from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.policy import TrustPolicy
from tests.discovery.conftest import make_candidate

BYTES = b"what was installed"
REQUIRED = TrustPolicy(require_record=True)


def written(data=BYTES, algorithm="sha256"):
    digest = hashlib.new(algorithm, data).digest()
    return f"{algorithm}={base64.urlsafe_b64encode(digest).rstrip(b'=').decode()}"


GOOD = f"spam/libspam.so,{written()},18"


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

    def write(line, data=BYTES, path="spam/libspam.so"):
        file = site / path
        file.write_bytes(data)
        content = f"spam/__init__.py,,\n{line}\nspam-1.2.dist-info/RECORD,,\n"
        (site / "spam-1.2.dist-info" / "RECORD").write_bytes(content.encode())
        return file

    return write


def verdict_on(
    file, site, policy=None, *companions, distribution="spam", source=Source.DISTRIBUTION, **options
):
    python_path = [] if site is None else [str(site)]
    one_pass = TrustJudge(policy or TrustPolicy(), python_path=python_path, **options)
    found = make_candidate(file, source, distribution=distribution)
    verdict = one_pass.judge(found)
    return one_pass.judge_companions(found, verdict, list(companions)) if companions else verdict


def outcome(*arguments, **options):
    verdict = verdict_on(*arguments, **options)
    return verdict.rule, verdict.accepted


ACCEPTED, REFUSED = ("LD-078", True), ("LD-078", False)


@pytest.mark.parametrize("algorithm", ["sha256", "sha384", "sha512"])
def test_a_file_is_compared_with_the_recorded_hash(algorithm, install, site):
    file = install(f"spam/libspam.so,{written(algorithm=algorithm)},18")
    assert outcome(file, site) == ACCEPTED
    assert "RECORD of spam 1.2" in verdict_on(file, site).message

    file.write_bytes(b"changed")
    assert outcome(file, site) == REFUSED
    verdict = verdict_on(file, site)
    assert hashlib.new(algorithm, b"changed").hexdigest() in verdict.message
    assert hashlib.new(algorithm, BYTES).hexdigest() in verdict.message
    assert "force-reinstall" in verdict.refused.remedy


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("spam/libspam.so,,", id="no hash"),
        pytest.param("spam/libother.so,sha256=AAAA,18", id="no line"),
        pytest.param("spam/libspam.so,md5=AAAA,18", id="a weak hash"),
        pytest.param("other/spam/libspam.so,sha256=AAAA,18", id="a longer path"),
        pytest.param("", id="an editable install"),
    ],
)
def test_where_record_says_nothing_it_decides_nothing(line, install, site):
    file = install(line)

    assert outcome(file, site) == ("LD-075", True)
    assert outcome(file, site, REQUIRED) == ("LD-079", False)
    assert str(file) in verdict_on(file, site, REQUIRED).message


def test_a_hash_may_be_required_and_there(install, site):
    file = install(GOOD)

    assert outcome(file, site, REQUIRED) == ACCEPTED
    assert outcome(file, site, REQUIRED, distribution=None) == ACCEPTED
    # A hash that is known is not computed again.
    assert outcome(file, site, known_sha256=lambda *_: "0" * 64) == REFUSED
    (site / "spam-1.2.dist-info").chmod(0o777)  # then it vouches for nothing
    assert verdict_on(file, site, REQUIRED).rule == "LD-079"


def test_a_weak_hash_is_reported(install, site):
    file = install(f"{GOOD}\nspam/libcompanion.so,md5=AAAA,18")
    companion = install(f"{GOOD}\nspam/libcompanion.so,md5=AAAA,18", path="spam/libcompanion.so")
    for found, verdict in (
        (companion, verdict_on(companion, site)),
        (companion, verdict_on(file, site, None, str(companion))),
    ):
        assert verdict.accepted
        weak = f"the RECORD of spam 1.2 has 'md5=AAAA' of {found}, which is not used"
        assert weak in verdict.message
    assert "'md5=AAAA'" in verdict_on(companion, site, REQUIRED).message


@pytest.mark.parametrize("text", ["", "!", "AAAAA"])
def test_a_damaged_hash_is_not_that_of_the_file(text, install, site):
    assert outcome(install(f"spam/libspam.so,sha256={text},18"), site) == REFUSED


@pytest.mark.parametrize(
    "line",
    [
        '"spam/libspam.so","{}",18',
        "./spam/libspam.so,{},18",
        "spam//libspam.so,{},18",
        "spam/./libspam.so,{},18",
        "spam/../spam/libspam.so,{},18",
        "../site/spam/libspam.so,{},18",
        "{site}/spam/libspam.so,{},18",
        "spam/libspam.so, {},18",
        "spam/libspam.so,,\nspam/libspam.so,md5=AAAA,18\nspam/libspam.so,{},18",
    ],
)
def test_however_a_row_is_written_it_is_compared(line, install, site):
    for digest in (written(), written().replace("sha256", "SHA256")):
        row = line.replace("{site}", str(site)).replace("{}", digest)
        assert outcome(install(row), site) == ACCEPTED
        assert outcome(install(row, b"changed"), site) == REFUSED


def test_each_row_of_a_file_counts(install, site):
    rows = [GOOD, f"./spam/libspam.so,{written(b'other')},18"]

    assert outcome(install("\n".join(rows)), site) == REFUSED
    assert outcome(install("\n".join(reversed(rows))), site) == REFUSED


def test_a_row_that_leads_nowhere_is_of_no_file(install, site):
    (site / "spam" / "loop").symlink_to("loop")
    rows = ["spam/loop/libspam.so", "spam\0/libspam.so", "/nowhere/libspam.so"]
    file = install("\n".join(f"{row},{written(b'other')},18" for row in rows))

    assert verdict_on(file, site).rule == "LD-075"


def test_a_site_directory_may_be_a_link(install, site, tmp_path):
    file = install(GOOD, b"changed")
    link = tmp_path / "by-link"
    link.symlink_to(site, target_is_directory=True)

    assert verdict_on(link / file.relative_to(site), site).rule == "LD-078"
    assert verdict_on(file, link).rule == "LD-078"


def test_a_file_that_changes_while_it_is_read_is_refused(install, site, monkeypatch):
    file = install(GOOD)
    read = trust_judge.sha256_of

    def change_meanwhile(fd):
        found = read(fd)
        file.write_bytes(b"changed after it was read")
        return found

    monkeypatch.setattr(trust_judge, "sha256_of", change_meanwhile)

    assert outcome(file, site) == ("LD-082", False)


@pytest.mark.parametrize("policy", [TrustPolicy(), REQUIRED])
def test_the_record_of_an_unpacked_wheel_counts(install, site, policy, tmp_path):
    relative = install(GOOD).relative_to(site)
    file = site.rename(tmp_path / "spam.wheel") / relative
    verdict = verdict_on(file, None, policy, source=Source.USER_DIRECTORY)
    assert (verdict.rule, verdict.accepted) == ACCEPTED
    assert "RECORD of spam 1.2" in verdict.message

    file.write_bytes(b"changed")

    assert outcome(file, None, policy, source=Source.USER_DIRECTORY) == REFUSED


def test_each_version_has_its_own_record(install, site, tmp_path):
    file = install(GOOD)
    folder = tmp_path / "spam.wheel"
    shutil.copytree(site, folder)
    install(f"spam/libspam.so,{written(b'another version')},18", b"another version")
    file = folder / file.relative_to(site)
    assert verdict_on(file, site).rule == "LD-078"

    file.write_bytes(b"another version")

    assert not verdict_on(file, site).accepted
