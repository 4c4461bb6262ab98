"""What tensorflow-io logs arrives in the log: its name, and its source where it tells one."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def messages(run_subject, store, **environment):
    """Return what a plugin logs while a file is written and read."""
    code = "put('file', b'content'); expect(get('file'), b'content')"
    env = {"MODULAR_TF_LOG": "json:debug", **environment}
    child = run_subject(store, code, folder="log", env=env)
    # At the very end, destructors of the plugin write as TensorFlow's do.
    events = [json.loads(line) for line in child.stderr.splitlines() if line.startswith("{")]
    return [event for event in events if event["event"] == "plugin.message"]


def test_lines_in_detail(object_store, run_subject):
    said = messages(run_subject, object_store, TF_CPP_MAX_VLOG_LEVEL="9")
    is_gcs = object_store.base_uri.startswith("gs:")

    assert {event["plugin"] for event in said} == {
        "tensorflow_io_gcs_filesystem" if is_gcs else "tensorflow_io_plugins"
    }
    assert {event["library"].rpartition("/")[2] for event in said} == {
        f"lib{said[0]['plugin']}.so",
    }
    assert any("log/file" in event["message"] for event in said)


def test_lines_with_their_source(oss_store, run_subject):
    said = messages(run_subject, oss_store, TF_CPP_VMODULE="oss_filesystem=9")

    assert said
    for event in said:
        assert (event["level"], event["severity"]) == ("info", "info")
        assert event["source"] == "tensorflow_io/core/filesystems/oss/oss_filesystem.cc"
        assert event["line"] > 0
        assert not event["message"].startswith(event["source"])
