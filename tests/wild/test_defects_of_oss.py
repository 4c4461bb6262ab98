"""The known defects of the OSS filesystem of tensorflow-io, answered; and real without answers."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_oss_short_read_is_ok(oss_store, run_subject):
    run_subject(
        oss_store,
        """
        put("file", b"content")
        expect([get("file", 4, 100), get("file", 7, 5), get("file", 100, 5)], [b"ent", b"", b""])
        with fs.new_appendable_file(uri("file")) as file:
            expect(file.tell(), 7)
            file.append(b"more")
            expect(file.tell(), 11)
        expect_error(ValueError, file.tell)
        expect(get("file"), b"contentmore")
        expect(fs.stat(uri("file")).mtime_nsec, 0)
        """,
        folder="short",
    )
    run_subject(
        oss_store,
        """
        put("file")
        expect_error(NotImplementedError, fs.new_appendable_file, uri("file"))
        expect(fs.stat(uri("file")).mtime_nsec, -2**63)
        """,
        folder="short-raw",
        without="append_by_rewriting,mtime_is_unknown",
    )


def test_oss_prefixes_exist(oss_store, run_subject):
    code = """
        import sys
        answered = sys.argv[1] == "answered"
        put("directory/file")
        expect(fs.path_exists(uri("direc")), not answered)
        expect(fs.stat(uri("directory")).is_directory, answered)
        if answered:
            expect_error(FileNotFoundError, fs.delete_file, uri("missing"))
            fs.rename_file(uri("directory"), uri("moved"))
            expect((fs.get_children(base), get("moved/file")), (["moved"], b"data"))
        else:
            fs.delete_file(uri("missing"))
        """
    run_subject(oss_store, code, "answered", folder="prefixes")
    run_subject(oss_store, code, "raw", folder="prefixes-raw", without="lookup")
