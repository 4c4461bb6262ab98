"""The process ends in order, whatever is still open."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_writers_left_open_are_closed_with_their_data(object_store, run_subject):
    run_subject(
        object_store,
        """
        raw = fs.new_writable_file(uri("raw"))
        raw.append(b"raw")
        stream = fs.open(uri("stream"), "wb")
        stream.write(b"stream")
        text = fs.open(uri("text"), "w")
        text.write("text")
        reader = fs.new_random_access_file(uri("raw")) if fs.path_exists(uri("raw")) else None
        """,
        folder="open",
    )
    run_subject(
        object_store,
        'expect([get("raw"), get("stream"), get("text")], [b"raw", b"stream", b"text"])',
        folder="open",
    )


@pytest.mark.parametrize("close", ["service.close()", "pass"])
def test_views_of_memory_may_be_alive(close, object_store, run_subject):
    child = run_subject(
        object_store,
        f"""
        content = bytes(range(256)) * 4096
        put("file", content)
        view = fs.new_read_only_memory_region_from_file(uri("file")).view()
        reader = fs.new_random_access_file(uri("file"))
        {close}
        expect(view == content, True)
        print("reached the end")
        """,
        folder="views",
    )
    assert child.stdout == "reached the end\n"


def test_a_filesystem_may_outlive_its_service(object_store, run_subject):
    run_subject(
        object_store,
        """
        import gc
        put("file")
        del service
        gc.collect()
        expect(get("file"), b"data")
        """,
        folder="orphan",
    )


def test_an_empty_file_left_open_is_created(s3_store, run_subject):
    run_subject(s3_store, 'left_open = fs.new_writable_file(uri("empty"))', folder="left")
    run_subject(s3_store, 'expect(get("empty"), b"")', folder="left")


def test_an_error_at_the_end_does_not_hide_the_exit_status(s3_store, run_subject):
    child = run_subject(
        s3_store,
        """
        import sys
        stream = fs.open("s3://no-such-bucket/file", "w")
        stream.write("lost")
        sys.exit(3)
        """,
        status=3,
    )
    assert "Traceback" not in child.stderr or "no-such-bucket" in child.stderr


def test_threads_may_still_read(s3_store, run_subject):
    run_subject(
        s3_store,
        """
        import threading
        put("file", bytes(1 << 20))
        def read_for_ever():
            try:
                while True:
                    get("file")
            except (errors.ModularTFError, ValueError):
                pass  # the filesystem is closed
        for _ in range(3):
            threading.Thread(target=read_for_ever, daemon=True).start()
        get("file")
        """,
        folder="threads-at-exit",
    )
