"""Every call into a plugin becomes an event of a trace."""

from __future__ import annotations

import errno
import os
import re
import signal
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import modular_tf as mtf
from modular_tf.abi.status_codes import Code
from modular_tf.errors import FailedPreconditionError, ModularTFError
from modular_tf.redaction import redacted
from tests.measuring.trace_files import events_of, names

_CORE = Path(__file__).parents[2] / "modular_tf" / "native" / "core"
_LONGEST_STORED = 255  # bytes of a path that an open file knows

BEGIN = """
import os, signal, sys
import modular_tf as mtf

service = mtf.PluginService()
service.load()
fs = service.filesystem("ram")
fs.path_exists("ram://")
"""


def test_each_call_is_an_event(service, tmp_path):
    fs = service.filesystem("ram")
    fs.recursively_create_dir("ram://traced")
    with mtf.trace(tmp_path / "t.json"):
        with fs.new_writable_file("ram://traced/file") as file:
            file.append(b"abc")
        assert not fs.path_exists("ram://traced/no")
        fs.get_children("ram://traced")
    fs.path_exists("ram://traced/later")

    events = events_of(tmp_path / "t.json", plugin="ram_filesystem")

    assert [name for name in names(events) if name != "translate_name"] == [
        "new_writable_file", "append", "close", "writer cleanup", "path_exists", "get_children",
    ]  # fmt: skip
    by_name = {event["name"]: event for event in events}
    assert by_name["append"]["args"] == {
        "bytes": 3, "status": "OK", "plugin": "ram_filesystem", "subject": "ram://traced/file",
    }  # fmt: skip
    assert by_name["path_exists"]["args"]["status"] == "NOT_FOUND"
    assert by_name["get_children"]["args"]["subject"] == "ram://traced"
    assert {event["pid"] for event in events} == {os.getpid()}
    assert {event["tid"] for event in events} == {threading.get_native_id()}
    ends = [event["ts"] + event["dur"] for event in events]
    assert ends == sorted(ends)


def test_many_threads_write_one_trace_after_another(service, tmp_path):
    fs, ended = service.filesystem("ram"), threading.Event()

    def ask_until_the_end():
        while not ended.is_set():
            fs.path_exists("ram://")

    def ask(_):
        for _ in range(100):
            fs.stat("ram://")
        return threading.get_native_id()

    with ThreadPoolExecutor(5) as pool:
        asking = pool.submit(ask_until_the_end)
        try:
            for _ in range(10):
                with mtf.trace(tmp_path / "t.json"):
                    threads = list(pool.map(ask, range(8)))
                events = events_of(tmp_path / "t.json")
                counted = Counter(event["tid"] for event in events if event["name"] == "stat")
                assert counted == {thread: 100 * n for thread, n in Counter(threads).items()}
        finally:
            ended.set()
    asking.result()


_URI_PARTS = st.sampled_from(
    ["s3://", "://", "b", "user", ":", "@", "/", "?", "&", "=", "sig", "token", "X-Amz-Signature",
     "key", "KEY", "apikey", "host=", "\x01", "\x08", "\\x01", "\\x0", "secret", " ", "\t", "'",
     '"', "#", "\x1f", "\x7f", "é", "#f", ".", "-", "_", "9"]
)  # fmt: skip


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(parts=st.lists(_URI_PARTS, max_size=14))
@example(parts=["token-of-an-account-9", "@", "host"])
def test_secrets_are_hidden_as_in_messages(parts, service, tmp_path):
    uri = "ram://" + "".join(parts)
    refused = suppress(ModularTFError)  # a name that the plugin does not take
    with mtf.trace(tmp_path / "t.json"), refused:
        service.filesystem("ram").path_exists(uri)

    for event in events_of(tmp_path / "t.json"):
        assert event["args"]["subject"] == redacted(uri)


def test_a_secret_that_a_long_path_cuts_is_hidden(service, tmp_path):
    fs = service.filesystem("ram")
    for begin, shown in (
        ("ram://user:with@", "ram://user:***"),
        ("ram://b\x01secret_key=", "ram://b\x01secret_key=***"),
    ):
        uri = begin + "verysecret" * 40 + "@b/file"
        assert len(uri) > _LONGEST_STORED
        fs.recursively_create_dir(uri.rpartition("/")[0])
        with fs.new_writable_file(uri) as file, mtf.trace(tmp_path / "t.json"):
            file.append(b"abc")

        (event,) = events_of(tmp_path / "t.json")
        assert event["args"]["subject"] == shown


def test_any_bytes_of_a_path_are_text(service, tmp_path):
    for raw, shown in (
        (b"\xff\xfe", "��"),
        (b"caf\xc3\xa9 \xf0\x9f\x98\x80", "café 😀"),
        (b"\xed\xa0\x80\xc0\xaf", "�����"),
        (b"cut \xe2\x82", "cut ��"),
        (b'a"b\\c\nd\x7f', 'a"b\\c\nd\x7f'),
    ):
        with mtf.trace(tmp_path / "t.json"):
            service.filesystem("ram").path_exists("ram://" + os.fsdecode(raw))

        subjects = {event["args"]["subject"] for event in events_of(tmp_path / "t.json")}
        assert subjects == {f"ram://{shown}"}


def test_statuses_have_the_names_of_codes():
    text = (_CORE / "call_trace.cc").read_text()
    listed = re.search(r"kStatuses\[\] = \{(.*?)\}", text, re.DOTALL)

    assert listed
    assert re.findall(r'"(\w+)"', listed[1]) == [code.name for code in Code]


def test_a_second_trace_is_refused_and_what_ends_the_block_ends_the_first(service, tmp_path):
    fs = service.filesystem("ram")

    def interrupted():
        with mtf.trace(tmp_path / "t.json"):
            for name in ("t.json", "other.json"):
                with pytest.raises(FailedPreconditionError, match="writes a trace already"):
                    mtf.trace(tmp_path / name).__enter__()
            fs.path_exists("ram://")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with mtf.trace(tmp_path / "u.json"):
        pass

    assert "path_exists" in names(events_of(tmp_path / "t.json"))


def test_a_place_that_takes_no_trace_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nowhere/t\.json"):
        mtf.trace(tmp_path / "nowhere" / "t.json").__enter__()
    with pytest.raises(OSError, match="/dev/full") as caught:
        mtf.trace("/dev/full").__enter__()
    assert caught.value.errno == errno.ENOSPC


def test_a_killed_process_leaves_whole_json(run_forked, tmp_path):
    code = """
import threading
trace = mtf.trace("killed.json")
trace.__enter__()
def ask():
    while True:
        fs.path_exists("ram://")
for _ in range(3):
    threading.Thread(target=ask, daemon=True).start()
for _ in range(1000):
    fs.path_exists("ram://")
os.kill(os.getpid(), signal.SIGKILL)
"""
    run_forked(BEGIN + code, status=-signal.SIGKILL)

    assert names(events_of(tmp_path / "killed.json")).count("path_exists") >= 1000


def test_a_forked_child_does_not_write_into_the_file_of_its_parent(run_forked, tmp_path):
    run_forked(
        BEGIN
        + """
with mtf.trace("t.json"):
    fs.path_exists("ram://before")
    child = os.fork()
    fs.path_exists("ram://child" if child == 0 else "ram://parent")
    if child == 0:
        with mtf.trace("child.json"):
            fs.path_exists("ram://own")
    else:
        assert os.waitpid(child, 0)[1] == 0
if child == 0:
    os._exit(0)
"""
    )

    def asked(name):
        events = events_of(tmp_path / name)
        return [e["args"]["subject"] for e in events if e["name"] == "path_exists"]

    assert asked("t.json") == ["ram://before", "ram://parent"]
    assert asked("child.json") == ["ram://own"]
