"""The known defects of the OSS filesystem of tensorflow-io, with and without workarounds."""

from __future__ import annotations

import pytest

from tests.wild.test_defects_of_az import RENAME_TO_ITSELF

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
        without="*",
    )


def test_oss_prefixes_exist(oss_store, run_subject):
    code = """
        worked_around = sys.argv[1] == "worked_around"
        put("directory/file")
        expect(fs.path_exists(uri("direc")), not worked_around)
        expect(fs.stat(uri("directory")).is_directory, worked_around)
        if worked_around:
            expect_error(FileNotFoundError, fs.delete_file, uri("missing"))
            fs.rename_file(uri("directory"), uri("moved"))
            expect((fs.get_children(base), get("moved/file")), (["moved"], b"data"))
        else:
            fs.delete_file(uri("missing"))
        """
    run_subject(oss_store, code, "worked_around", folder="prefixes")
    run_subject(oss_store, code, "raw", folder="prefixes-raw", without="*")


def test_oss_rename_to_itself_deletes(oss_store, run_subject):
    run_subject(oss_store, RENAME_TO_ITSELF, folder="itself")
    run_subject(oss_store, RENAME_TO_ITSELF, folder="itself", without="rename_file")


def test_oss_delete_takes_siblings_along(oss_store, run_subject):
    code = """
        for directory in (base, uri("a"), uri("ab")):
            fs.create_dir(directory)
        put("a/file")
        put("ab/file")
        put("ac")
        fs.delete_recursively(uri("a"))
        expect(" ".join(fs.get_children(base)), sys.argv[1])
        """
    run_subject(oss_store, code, "ab ac", folder="siblings")
    run_subject(oss_store, code, "", folder="siblings-raw", without="*")


def test_oss_empty_file_cannot_be_closed(oss_store, run_subject):
    code = """
        kind = getattr(errors, sys.argv[1])
        put("file", b"content")
        for path in ("new", "file"):
            print(expect_error(kind, fs.new_writable_file(uri(path)).close))
        expect((fs.get_children(base), get("file")), (["file"], b"content"))
        """
    worked_around = run_subject(oss_store, code, "UnimplementedError", folder="empty")
    assert worked_around.stdout.count("cannot write a file of no bytes") == 2
    without = "writer_type"
    raw = run_subject(oss_store, code, "NotFoundError", folder="empty", without=without)
    assert raw.stdout.count("404 object not exists") == 2


def test_an_empty_file_of_somebody_else_moves(oss_store, run_subject):
    """The plugin makes none of its own, but copies what makes up a directory."""
    run_subject(
        oss_store,
        """
        import modular_tf.filesystem.plugin_filesystem as plain
        fs.recursively_create_dir(uri("directory"))
        plain.PluginFilesystem.copy_file(fs, uri("directory/"), uri("empty"))
        expect((fs.stat(uri("empty")).length, get("empty")), (0, b""))
        fs.copy_file(uri("empty"), uri("copied"))
        fs.rename_file(uri("empty"), uri("moved"))
        expect(fs.get_children(base), ["copied", "directory", "moved"])
        expect((get("copied"), get("moved")), (b"", b""))
        """,
        folder="empty-of-others",
    )
