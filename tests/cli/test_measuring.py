"""`--trace` and `--statistics`: what the plugins of a command did."""

import signal
import subprocess
import sys

import pytest

from tests.measuring.trace_files import events_of, names

_OF_FILES = 'plugin="posix_filesystem"'


@pytest.fixture
def file(tmp_path):
    """A local file of 5 bytes."""
    made = tmp_path / "file.txt"
    made.write_bytes(b"hello")
    return made


def test_a_command_writes_a_trace_and_statistics(mtf, file, tmp_path):
    both = "--trace", tmp_path / "t.json", "--statistics", tmp_path / "m.prom"
    ended = mtf(*both[:2], "fs", "cat", file, *both[2:])

    assert (ended.code, ended.out) == (0, b"hello")
    events = events_of(tmp_path / "t.json", plugin="posix_filesystem")
    assert {event["args"]["bytes"] for event in events if event["name"] == "read"} >= {5}
    assert "cleanup" in names(events)  # the service is closed within the trace
    text = (tmp_path / "m.prom").read_text()
    assert f'_duration_seconds_count{{{_OF_FILES},operation="read"}}' in text
    assert f'_call_bytes_total{{{_OF_FILES},operation="read"}}' in text

    assert mtf("fs", "cat", tmp_path / "missing", *both).code == 1  # writes both as well
    failed = events_of(tmp_path / "t.json", status="NOT_FOUND")
    assert {event["cat"] for event in failed} == {"posix_filesystem"}
    assert 'status="NOT_FOUND"' in (tmp_path / "m.prom").read_text()


def test_statistics_go_to_standard_output_too(mtf):
    ended = mtf("schemes", "--statistics", "-")

    assert ended.code == 0
    assert "ram_filesystem" in ended.lines[2]  # the table of schemes comes first
    assert ended.lines[-1].startswith("modular_tf_plugin_calls_under_way{")


def test_devices_are_traced(mtf, tmp_path):
    assert mtf("devices", "--trace", tmp_path / "t.json").code == 0
    assert "create_device" in names(events_of(tmp_path / "t.json", plugin="host_device"))


@pytest.mark.parametrize("option", ["--trace", "--statistics"])
def test_a_file_that_cannot_be_written_stops_the_command_before_it_works(mtf, file, option):
    ended = mtf("fs", "cat", file, option, file / "x")

    assert (ended.code, ended.out) == (1, b"")
    assert str(file / "x") in ended.err


@pytest.mark.parametrize("option", ["--trace", "--statistics"])
def test_commands_that_call_no_plugin_refuse_it(mtf, option, tmp_path):
    for line in (
        *("new filesystem x", "check x.so", "completion bash", "headers"),
        *("quarantine list", "quarantine clear"),
    ):
        ended = mtf(*line.split(), option, tmp_path / "file")
        assert ended.code == 2
        assert "this command calls no plugin in its process" in ended.err
    assert not (tmp_path / "file").exists()


def test_a_command_that_is_ended_by_its_user_leaves_a_whole_trace(tmp_path):
    command = [sys.executable, "-m", "modular_tf", "watch", "--trace", "t.json"]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as child:
        assert child.stderr
        assert b"watching" in child.stderr.readline()
        child.send_signal(signal.SIGINT)
        child.wait(60)

    events_of(tmp_path / "t.json")
