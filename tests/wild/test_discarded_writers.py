"""A file that is given up before it is closed leaves a store as it was, or nothing torn."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_what_is_discarded_is_not_stored(object_store, run_subject):
    run_subject(
        object_store,
        """
        put("f", b"as it was")
        for path in ("f", "new"):
            writer = fs.new_writable_file(uri(path))
            writer.append(b"half of it")
            writer.discard()
            writer.close()
        if fs.forgets_discarded:
            expect(get("f"), b"as it was")
            expect(fs.path_exists(uri("new")), False)
        expect_error(errors.ClosedError, writer.append, b"more")
        service.close()
        """,
        folder="discarded",
    )


def test_a_copy_whose_source_breaks_off_leaves_the_target_as_it_was(object_store, run_subject):
    run_subject(
        object_store,
        """
        from modular_tf.filesystem.copying import copy_through
        from modular_tf.filesystem.files import RandomAccessFile

        class Source:
            def new_random_access_file(self, path):
                return File()

        class File(RandomAccessFile):
            uri = "broken://h/f"

            def readinto(self, offset, buffer):
                if offset:
                    raise errors.UnavailableError("it broke off")
                return len(buffer)

            def close(self):
                pass

        put("f", b"as it was")
        service.register_filesystem("broken", Source())
        source = service.filesystem("broken")
        expect_error(
            errors.UnavailableError, copy_through, source, "broken://h/f", fs, uri("f")
        )
        if fs.forgets_discarded:
            expect(get("f"), b"as it was")
        else:
            expect(fs.path_exists(uri("f")), False)
        """,
        folder="broken-off",
    )
