"""The process ends in order, whatever is still open."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_what_is_left_open_is_closed_with_its_data_and_a_view_may_be_alive(
    object_store, run_subject, run_python
):
    """In interpreters of its own: what a fork has of its server is not collected at the end."""
    run_subject(
        object_store,
        """
        content = bytes(range(256)) * 4096
        put("file", content)
        view = fs.new_read_only_memory_region_from_file(uri("file")).view()
        reader = fs.new_random_access_file(uri("file"))
        raw = fs.new_writable_file(uri("raw"))
        raw.append(b"raw")
        stream = fs.open(uri("stream"), "wb")
        stream.write(b"stream")
        text = fs.open(uri("text"), "w")
        text.write("text")
        if base.startswith("s3:"):
            left_open = fs.new_writable_file(uri("empty"))
        expect(view == content, True)
        """,
        folder="left-open",
        run_child=run_python,
    )
    child = run_subject(
        object_store,
        """
        import gc
        expect([get("raw"), get("stream"), get("text")], [b"raw", b"stream", b"text"])
        if base.startswith("s3:"):
            expect(get("empty"), b"")
        other = begin()
        view = other.filesystem_for(base).new_read_only_memory_region_from_file(uri("file")).view()
        other.close()
        expect(view == bytes(range(256)) * 4096, True)
        del service  # its filesystem may outlive it
        gc.collect()
        expect(get("raw"), b"raw")
        print("reached the end")
        """,
        folder="left-open",
        run_child=run_python,
    )
    assert child.stdout == "reached the end\n"
