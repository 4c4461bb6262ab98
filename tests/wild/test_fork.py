"""A forked child goes on with the filesystem that it inherited."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_parent_and_child_go_on(object_store, run_subject):
    run_subject(
        object_store,
        """
        import os, sys
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
                expect(reader.read(0, 6), b"before")  # it is short, and was read when it was opened
            except BaseException as error:
                print("in the child:", repr(error), file=sys.stderr, flush=True)
                os._exit(1)
            sys.exit(0)
        expect(os.waitpid(child, 0)[1], 0)
        writer.close()
        expect([get("child"), get("parent"), reader.read(0, 6)], [b"child", b"parent", b"before"])
        """,
        folder="forked",
        timeout=40,
    )


def test_a_web_page_is_read_in_the_child(http_store, run_subject):
    (http_store.folder / "forked").write_bytes(b"content")
    run_subject(
        http_store,
        """
        import os
        expect(get("forked"), b"content")
        child = os.fork()
        if not child:
            os._exit(0 if get("forked", 2, 3) == b"nte" else 1)
        expect(os.waitpid(child, 0)[1], 0)
        expect(get("forked"), b"content")
        """,
        timeout=40,
    )
