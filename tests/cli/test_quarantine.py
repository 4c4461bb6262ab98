"""`quarantine list`, `retry` and `clear`."""

import shutil
import sqlite3
from contextlib import closing

import pytest

from modular_tf.codec import encode
from modular_tf.discovery.file_identity import see
from modular_tf.discovery.host_fingerprint import HostFingerprint
from modular_tf.first_contact.finding import Incident
from modular_tf.rules import Violation
from modular_tf.service.storage import database as database_module
from modular_tf.service.storage.private_directory import PrivateDirectory
from modular_tf.service.storage.quarantine import QuarantineStore

SHA256 = "0123456789abcdef" * 4
FRAMES = ("libbad.so SE_InitPlugin+0x10", "libbad.so start+0x1")


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # Every plugin of these tests is tried: none comes with the package.
    monkeypatch.delenv("MODULAR_TF_FIRST_CONTACT")


def incident(signal=11):
    violation = Violation("LD-060", "crashed with SIGSEGV in SE_InitPlugin")
    return Incident.of(violation, signal=signal, last_call="SE_InitPlugin", backtrace=FRAMES)


def quarantine(path="/where/libbad.so", sha256=SHA256, name="bad", signal=11):
    return QuarantineStore.of_process().remember(sha256, name, str(path), incident(signal))


def remembered():
    return [entry.name for entry in QuarantineStore.of_process().entries()]


@pytest.fixture
def good(fixture_plugin, tmp_path):
    """A good plugin that is in quarantine."""
    path = tmp_path / "libgood.so"
    shutil.copy(fixture_plugin(), path)
    seen = see(str(path))
    assert seen is not None
    quarantine(path, seen.sha256, "good")
    return path


VERBS = [("list",), ("retry", "bad"), ("clear",)]


def test_a_quarantine_that_somebody_else_has_locked_is_not_empty(mtf, tmp_path, monkeypatch):
    monkeypatch.setattr(database_module, "_BUSY_S", 0.05)  # how long it waits for the other
    quarantine()
    (database,) = tmp_path.glob("state/**/quarantine-*.sqlite")
    with closing(sqlite3.connect(database, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        ended = [mtf("quarantine", *verb) for verb in VERBS]

    for one in ended:
        assert one.code not in (0, 3), one.err
        assert "another process has locked it" in one.err
    assert remembered() == ["bad"]


def test_a_damaged_quarantine_is_named_until_its_file_is_removed(mtf, tmp_path):
    quarantine()
    (database,) = tmp_path.glob("state/**/quarantine-*.sqlite")
    database.write_bytes(b"damaged" * 1000)
    assert remembered() == []  # by another command, which need not have shown it

    damaged = database.with_name(f"{database.name}.damaged")
    for verb in VERBS:
        assert f"{damaged}: this quarantine was damaged" in mtf("quarantine", *verb).err
    damaged.unlink()
    for verb in VERBS:
        assert "damaged" not in mtf("quarantine", *verb).err


def test_list_shows_what_each_did_and_more_on_demand(mtf):
    quarantine()
    quarantine(sha256="f" * 64, name="other", signal=40)
    ended, verbose = mtf("quarantine", "list"), mtf("quarantine", "list", "-v")

    assert ended.code == 0
    bad, other = (line.split("\t") for line in ended.lines)
    assert bad[:4] == ["bad", "LD-060", "SIGSEGV", "SE_InitPlugin"]
    assert (bad[4][4], bad[5]) == ("-", "/where/libbad.so")
    assert other[2] == "signal 40"  # which has no name
    text = "\n".join(verbose.lines)
    assert "crashed with SIGSEGV in SE_InitPlugin [LD-060]" in text
    assert SHA256 in text
    assert all(f"    {frame}" in verbose.lines for frame in FRAMES)


def test_list_as_json_has_everything_and_what_changed_of_the_host(mtf, tmp_path):
    parts = dict(QuarantineStore.of_process()._host.parts) | {"kernel": "5.0"}
    then = HostFingerprint(tuple(parts.items()))
    directory = PrivateDirectory(str(tmp_path / "state" / "modular_tf"))
    entry = QuarantineStore(directory, then).remember(SHA256, "bad", "/bad.so", incident())
    found = mtf("quarantine", "list", "--json").object
    ((change,),) = (listed.pop("changes") for listed in found["quarantine"])

    assert found == {"schema_version": 1, "quarantine": [encode(entry)]}
    assert change.startswith("kernel: 5.0 -> ")


def test_clear_forgets_what_is_named_or_all(mtf):
    quarantine()
    quarantine(sha256="f" * 64, name="other", path="/other.so")
    quarantine(sha256="e" * 64, name="third", path="/third.so")
    quarantine(sha256="d" * 64, name="fourth", path="/fourth.so")
    named = mtf("quarantine", "clear", SHA256[:8], "/third.so", "--json")

    assert named.code == 0
    assert [entry["name"] for entry in named.object["cleared"]] == ["bad", "third"]
    assert sorted(remembered()) == ["fourth", "other"]
    ended = mtf("quarantine", "clear")
    assert (ended.code, sorted(ended.lines)) == (0, ["fourth\t/fourth.so", "other\t/other.so"])
    assert remembered() == []
    assert mtf("quarantine", "clear").code == 0
    empty = mtf("quarantine", "list")
    assert (empty.code, empty.out) == (3, b"")
    assert "nothing is in quarantine" in empty.err


@pytest.mark.parametrize("verb", ["clear", "retry"])
def test_an_unknown_name_is_a_no(mtf, verb):
    assert mtf("quarantine", "retry").code == 2  # it needs one
    quarantine()
    ended = mtf("quarantine", verb, "unknown")

    assert ended.code == 1
    assert "unknown: nothing in quarantine has that name" in ended.err
    assert remembered() == ["bad"]


@pytest.mark.parametrize("is_there", [True, False])
def test_retry_lets_a_good_plugin_out_and_forgets_one_that_is_gone(mtf, good, is_there):
    if not is_there:
        good.unlink()
    ended = mtf("quarantine", "retry", "good")

    assert ended.code == (not is_there)
    assert [line.split("\t")[1:3] for line in ended.lines] == [["loaded", str(good)]] * is_there
    assert (f"{good}: " in ended.err and "does not exist" in ended.err) is not is_there
    assert remembered() == []


def test_retry_of_a_bad_plugin_tells_what_it_did_again(mtf, fixture_device_plugin):
    """The whole way: a list finds the culprit, quarantine keeps it, and a new trial condemns it."""
    path = str(fixture_device_plugin("init-plugin-crashes"))
    (plugin,) = mtf("list", "--plugin", path, "--no-bundled", "--json").object["plugins"]
    assert plugin["state"] == "quarantined"
    (entry,) = mtf("quarantine", "list", "--json").object["quarantine"]
    assert entry["path"] == path
    assert entry["incident"]["rule"] == plugin["reason"]["rule"] == "LD-060"

    ended = mtf("quarantine", "retry", entry["name"])

    assert ended.code == 1
    assert ended.lines[0].split("\t")[1:3] == ["quarantined", path]
    (again,) = mtf("quarantine", "list", "--json").object["quarantine"]
    assert again["time"] > entry["time"]
