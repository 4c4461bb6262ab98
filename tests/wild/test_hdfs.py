"""The HDFS filesystem of tensorflow-io, without Hadoop and with a libhdfs over a local folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fixtures.compiler import compile_object, link_library
from tests.fixtures.emulators import Store

pytestmark = pytest.mark.wild


@pytest.fixture
def hadoop(tmp_path):
    """Return the environment of a machine with Hadoop, and the folder that is its HDFS."""
    source = Path(__file__).parent / "hdfs" / "folder_hdfs.c"
    library = link_library("libhdfs.so", [compile_object(source)])
    home, root = tmp_path / "hadoop", tmp_path / "root"
    (home / "lib" / "native").mkdir(parents=True)
    (home / "lib" / "native" / "libhdfs.so").symlink_to(library)
    root.mkdir()
    environment = {
        "HADOOP_HDFS_HOME": str(home),
        "FOLDER_HDFS_ROOT": str(root),
        "FOLDER_HDFS_DEFAULT": "viewfs://namenode:9000",
    }
    return environment, root


def test_without_hadoop_every_call_says_what_is_missing(run_subject):
    run_subject(
        Store("", "hdfs://namenode:9000"),
        """
        os.environ.pop("HADOOP_HDFS_HOME", None)
        for scheme in ("hdfs", "viewfs", "har"):
            file = f"{scheme}://namenode:9000/file"
            fs = service.filesystem_for(file)
            for ask in (fs.path_exists, fs.stat, fs.new_random_access_file, fs.get_children):
                message = str(expect_error(ConnectionError, ask, file))
                expect("needs libhdfs.so" in message, True)
                expect("HADOOP_HDFS_HOME is not set" in message, True)
        """,
    )


def test_hdfs_without_library(hadoop, run_subject):
    """The library may come later; without the workaround the plugin fails for ever."""
    environment, _ = hadoop
    code = """
        import os, sys
        worked_around = sys.argv[1] == "worked_around"
        home = os.environ.pop("HADOOP_HDFS_HOME")
        if worked_around:
            expect_error(ConnectionError, fs.path_exists, uri("file"))
        else:
            expect(fs.path_exists(uri("file")), False)
        os.environ["HADOOP_HDFS_HOME"] = home
        if worked_around:
            put("file", b"content")
            expect(get("file"), b"content")
        else:
            expect_error(errors.InternalError, put, "file")
        """
    store = Store("", "hdfs://namenode:9000", environment)
    run_subject(store, code, "worked_around")
    run_subject(store, code, "raw", without="require")


def test_files_and_directories(hadoop, run_subject):
    environment, root = hadoop
    run_subject(
        Store("", "hdfs://namenode:9000", environment),
        """
        for base in ("hdfs://namenode:9000", "viewfs://namenode:9000"):
            fs = service.filesystem_for(base)
            content = bytes(range(256)) * 4096
            fs.create_dir(uri("directory"))
            with fs.new_writable_file(uri("directory/file")) as file:
                file.append(content)
                expect(file.tell(), len(content))
            with fs.new_appendable_file(uri("directory/file")) as file:
                file.append(b"more")
            expect(get("directory/file", 1000, 5), content[1000:1005])
            expect(get("directory/file", len(content), 100), b"more")
            expect(fs.get_file_size(uri("directory/file")), len(content) + 4)
            expect(fs.get_children(uri("directory")), ["file"])
            expect((fs.is_directory(uri("directory")), fs.is_directory(uri("directory/file"))),
                   (True, False))
            fs.copy_file(uri("directory/file"), uri("copy"))
            fs.rename_file(uri("copy"), uri("renamed"))
            expect(fs.get_matching_paths(uri("*")), [uri("directory"), uri("renamed")])
            fs.recursively_create_dir(uri("a/b/c"))
            expect(fs.delete_recursively(uri("a")), (0, 0))
            for ask in (fs.stat, fs.get_file_size, fs.get_children, fs.delete_file, fs.open):
                expect_error(FileNotFoundError, ask, uri("missing"))
            expect_error(FileNotFoundError, fs.rename_file, uri("missing"), uri("target"))
            for name in ("directory/file", "renamed"):
                fs.delete_file(uri(name))
            fs.delete_dir(uri("directory"))
            expect(fs.path_exists(uri("directory")), False)
        put("left")
        """,
    )
    assert [entry.name for entry in root.iterdir()] == ["left"]
