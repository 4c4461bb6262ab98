"""LD-111 and LD-004: of files that are no library, or longer than any, the bytes are not read.

A file of 10 GB would keep a process busy for more than a minute. Here they are sparse.
"""

from __future__ import annotations

import os
import shutil

import pytest

from modular_tf.discovery import file_identity
from modular_tf.discovery.file_identity import see, see_library
from modular_tf.discovery.trust import judge as trust_judge
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.service.configuration import Config
from modular_tf.service.report import State
from modular_tf.service.service import PluginService
from tests.trust.opening import opened_library, opening_plugin

LONG = 10 << 30


@pytest.fixture(autouse=True)
def hashed(monkeypatch):
    """Return the lengths of the files that are hashed, none of which may be long."""
    lengths = []
    sha256_of = file_identity.sha256_of

    def hashes(fd):
        lengths.append(os.fstat(fd).st_size)
        assert lengths[-1] < LONG
        return sha256_of(fd)

    for module in file_identity, trust_judge:
        monkeypatch.setattr(module, "sha256_of", hashes)
    return lengths


def lengthen(path):
    with path.open("ab") as stream:
        stream.truncate(LONG)


def record_of(path, **config):
    with PluginService(plugin_paths=[path], bundled=False, config=Config(**config)) as service:
        (record,) = service.load().plugins
    return record


@pytest.mark.parametrize(
    ("is_frozen", "content", "rule", "said"),
    [
        (False, b"no library", "LD-004", ""),
        (False, None, "LD-111", f"has {LONG} bytes, a library at most"),
        (True, None, "LD-111", f"has {LONG} bytes, a library at most"),
    ],
    ids=["no library", "a library", "frozen"],
)
def test_a_long_file_is_refused_unread(
    is_frozen, content, rule, said, fixture_plugin, tmp_path, hashed
):
    path = tmp_path / "libx.so"
    path.write_bytes(content or fixture_plugin("good").read_bytes())
    lengthen(path)

    for _ in ("new", "known"):
        record = record_of(path, trust=TrustPolicy(frozen=is_frozen))
        assert record.state is State.REJECTED
        assert [reason.rule for reason in record.reasons] == [rule]
        assert said in record.reason.message
    assert LONG not in hashed


def test_the_longest_library_is_loaded(fixture_plugin, tmp_path, monkeypatch):
    path = tmp_path / "libx.so"
    shutil.copy(fixture_plugin("good"), path)
    size = path.stat().st_size
    monkeypatch.setattr(file_identity, "MOST_BYTES", size)

    assert see(str(path)).sha256 == see_library(str(path)).sha256 is not None
    assert record_of(path).state is State.LOADED
    monkeypatch.setattr(file_identity, "MOST_BYTES", size - 1)
    assert see(str(path)) is None
    assert see_library(str(path)).sha256 is None


def test_a_long_companion_costs_the_plugin(tmp_path, hashed):
    companion = opened_library(tmp_path / "libneeded.so", soname="libneeded.so")
    options = ["-Wl,--no-as-needed", str(companion), "-Wl,-rpath,$ORIGIN"]
    plugin = opening_plugin(tmp_path / "libx.so", options=options)
    lengthen(companion)

    record = record_of(plugin)

    assert (record.state, record.reason.rule) == (State.REJECTED, "LD-111")
    assert f"{companion} has {LONG} bytes" in record.reason.message
    assert LONG not in hashed


def test_a_long_library_that_code_opens_is_reported_and_not_read(tmp_path, monkeypatch, hashed):
    """Whether the plugin opened it, or another thread did, cannot be told in this process."""
    opened = opened_library(tmp_path / "libopened.so")
    lengthen(opened)
    monkeypatch.setenv("OPENS_IN_CONSTRUCTOR", str(opened))
    # Bytes matter only while a file has changed lately, however slow this machine is.
    monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", 10**18)

    record = record_of(opening_plugin(tmp_path / "libx.so"), load="eager")

    (told,) = [reason for reason in (*record.reasons, *record.warnings) if reason.rule]
    assert told.rule in ("LD-098", "LD-099")
    assert f"it has {LONG} bytes" in told.message
    assert LONG not in hashed
