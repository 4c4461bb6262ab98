"""Forked children on one filesystem of a real plugin; `test_faults` has threads."""

from __future__ import annotations

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
