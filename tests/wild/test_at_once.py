"""Forked children on one filesystem of a real plugin, and its log; `test_faults` has threads."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_a_forked_child_goes_on(object_store, run_subject):
    run_subject(
        object_store,
        """
        put("file", b"before")
        reader = fs.new_random_access_file(uri("file"))
        writer = fs.new_writable_file(uri("parent"))
        writer.append(b"parent")
        child = os.fork()
        if not child:
            try:
                expect(get("file"), b"before")
                put("child", b"child")
                expect(fs.get_file_size(uri("child")), 5)
                # It is short, and was read when it was opened.
                expect(reader.read(0, 6), b"before")
            except BaseException as error:
                print("in the child:", repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            sys.exit(0)
        expect(os.waitpid(child, 0)[1], 0)
        writer.close()
        found = [get("child"), get("parent"), reader.read(0, 6)]
        expect(found, [b"child", b"parent", b"before"])
        """,
        folder="forked",
    )


@pytest.fixture
def messages(run_subject):
    """Return what a plugin logs while a file is written and read."""

    def messages(store, **environment):
        code = "put('file', b'content'); expect(get('file'), b'content')"
        env = {"MODULAR_TF_LOG": "json:debug", **environment}
        child = run_subject(store, code, folder="log", env=env)
        # At the very end, destructors of the plugin write as TensorFlow's do.
        events = [json.loads(line) for line in child.stderr.splitlines() if line.startswith("{")]
        return [event for event in events if event["event"] == "plugin.message"]

    return messages


@pytest.mark.parametrize(
    ("object_store", "name"),
    [("az", "tensorflow_io_plugins"), ("gs", "tensorflow_io_gcs_filesystem")],
    indirect=["object_store"],
)
def test_its_log_arrives_with_its_name_and_in_detail(object_store, name, messages):
    events = messages(object_store, TF_CPP_MAX_VLOG_LEVEL="9")

    assert {event["plugin"] for event in events} == {name}
    assert {event["library"].rpartition("/")[2] for event in events} == {f"lib{name}.so"}
    assert any("log/file" in event["message"] for event in events)
