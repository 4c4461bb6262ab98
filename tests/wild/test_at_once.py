"""Threads and forked children at once on one filesystem of a real plugin, and its log."""

from __future__ import annotations

import json

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_eight_threads_mix_operations_and_a_forked_child_goes_on(object_store, run_subject):
    run_subject(
        object_store,
        {
            "threads": """
                import random
                from concurrent.futures import ThreadPoolExecutor

                shared = bytes(range(256)) * 8192
                put("shared", shared)
                shared_file = fs.new_random_access_file(uri("shared"))

                def work(number):
                    chance = random.Random(number)
                    for step in range(4):
                        path = f"own/{number}/{step}"
                        content = chance.randbytes(chance.randrange(1, 300_000))
                        put(path, content)
                        offset, n = chance.randrange(len(shared)), chance.randrange(1, 400_000)
                        expect(shared_file.read(offset, n) == shared[offset:offset + n], True)
                        expect(get(path) == content, True)
                        expect(fs.get_file_size(uri(path)), len(content))
                        expect_error(FileNotFoundError, fs.stat, uri(f"{path}-missing"))
                        fs.rename_file(uri(path), uri(f"{path}-moved"))
                        expect(get(f"{path}-moved") == content, True)
                        expect(fs.get_children(uri(f"own/{number}")), [f"{step}-moved"])
                        fs.delete_file(uri(f"{path}-moved"))
                    return number

                with ThreadPoolExecutor(8) as pool:
                    expect(sorted(pool.map(work, range(8))), list(range(8)))
                """,
            "forked": """
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
        },
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


def test_lines_of_its_log_have_their_source(oss_store, messages):
    events = messages(oss_store, TF_CPP_VMODULE="oss_filesystem=9")

    assert events
    for event in events:
        assert (event["level"], event["severity"]) == ("info", "info")
        assert event["source"] == "tensorflow_io/core/filesystems/oss/oss_filesystem.cc"
        assert event["line"] > 0
        assert not event["message"].startswith(event["source"])


def test_threads_and_a_forked_child_read_one_file_from_the_web(http_store, run_subject):
    (http_store.folder / "threads").write_bytes(bytes(range(256)) * 16384)
    run_subject(
        http_store,
        """
        from concurrent.futures import ThreadPoolExecutor
        pattern = bytes(range(256)) * 16384
        with fs.new_random_access_file(uri("threads")) as file:
            def work(number):
                for step in range(50):
                    offset = (number * 7919 + step * 104729) % len(pattern)
                    expect(file.read(offset, 5000) == pattern[offset:offset + 5000], True)
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(work, range(8)))
        child = os.fork()
        if not child:
            os._exit(0 if get("threads", 2, 3) == pattern[2:5] else 1)
        expect(os.waitpid(child, 0)[1], 0)
        expect(get("threads", 2, 3), pattern[2:5])
        """,
    )
