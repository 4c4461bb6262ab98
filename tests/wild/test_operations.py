"""Every operation on every store that can be written to gives what POSIX would give."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]

_OPERATIONS = {
    "files": """
        content = bytes(range(256)) * 4096
        with fs.new_writable_file(uri("file")) as file:
            file.append(content[:1000])
            expect(file.tell(), 1000)
            file.append(content[1000:])
            file.flush()
            file.sync()
        expect(fs.stat(uri("file"))[::2], (len(content), False))
        expect(fs.get_file_size(uri("file")), len(content))
        expect([get("file", *at) for at in ((0, 3), (1000, 5), (len(content) - 2, 9), (9**9, 1))],
               [content[:3], content[1000:1005], content[-2:], b""])
        with fs.new_random_access_file(uri("file")) as file:
            target = bytearray(300_000)
            expect(file.readinto(7, target), 300_000)
            expect(target == content[7:300_007], True)
        with fs.new_read_only_memory_region_from_file(uri("file")) as region:
            expect((len(region), region.view() == content), (len(content), True))
        with fs.new_appendable_file(uri("file")) as file:
            file.append(b"more")
        expect(get("file", len(content), 100), b"more")
        with fs.new_appendable_file(uri("new")) as file:
            file.append(b"new")
        expect(get("new"), b"new")
        put("file", b"shorter")
        expect(get("file"), b"shorter")
        with fs.open(uri("text"), "w", encoding="utf-8") as text:
            text.write("zwölf\\nBoxkämpfer\\n")
        with fs.open(uri("text"), encoding="utf-8") as text:
            expect(list(text), ["zwölf\\n", "Boxkämpfer\\n"])
        expect_error(FileExistsError, fs.open, uri("text"), "x")
        """,
    "directories": """
        fs.recursively_create_dir(uri("a/b/c"))
        fs.recursively_create_dir(uri("a/b/c"))
        expect([fs.is_directory(uri(path)) for path in ("a", "a/b", "a/b/c")], [True] * 3)
        expect((fs.get_children(uri("a")), fs.get_children(uri("a/b/c"))), (["b"], []))
        expect_error(FileExistsError, fs.create_dir, uri("a"))
        put("a/file")
        put("a/b/file")
        expect(fs.get_children(uri("a")), ["b", "file"])
        expect(fs.get_children(uri("a/")), ["b", "file"])
        expect(fs.stat(uri("a")).is_directory, True)
        refused = errors.FailedPreconditionError
        for ask in (fs.get_file_size, fs.delete_file, fs.delete_dir, fs.new_random_access_file):
            expect_error(refused, ask, uri("a"))
        for ask in (fs.get_children, fs.delete_dir, fs.recursively_create_dir):
            expect_error(refused, ask, uri("a/file"))
        fs.delete_dir(uri("a/b/c"))
        expect(fs.path_exists(uri("a/b/c")), False)
        expect(fs.delete_recursively(uri("a")), (0, 0))
        expect(fs.path_exists(uri("a")), False)
        expect(fs.is_directory(base.rsplit("/", 1)[0]), True)
        """,
    "moves": """
        put("file", b"content")
        fs.copy_file(uri("file"), uri("copy"))
        fs.rename_file(uri("copy"), uri("moved"))
        expect((get("moved"), fs.get_children(base)), (b"content", ["file", "moved"]))
        fs.rename_file(uri("moved"), uri("moved"))
        expect(get("moved"), b"content")
        put("other", b"replaced")
        fs.rename_file(uri("moved"), uri("other"))
        expect((get("other"), fs.path_exists(uri("moved"))), (b"content", False))

        put("tree/deep/leaf", b"leaf")
        put("treehouse")
        fs.recursively_create_dir(uri("tree/hollow"))
        fs.copy_file(uri("file"), uri("tree"))
        fs.rename_file(uri("tree"), uri("forest"))
        expect(fs.get_children(uri("forest")), ["deep", "file", "hollow"])
        expect((get("forest/deep/leaf"), get("forest/file")), (b"leaf", b"content"))
        expect(fs.get_children(base), ["file", "forest", "other", "treehouse"])
        refused = errors.FailedPreconditionError
        expect_error(refused, fs.rename_file, uri("file"), uri("forest"))
        expect_error(refused, fs.rename_file, uri("forest"), uri("file"))
        expect_error(refused, fs.copy_file, uri("forest"), uri("elsewhere"))
        expect_error(ValueError, fs.rename_file, uri("forest"), uri("forest/deep/er"))
        expect(get("forest/deep/leaf"), b"leaf")
        """,
    "globs": """
        for path in ("a/1.txt", "a/2.txt", "a/3.csv", "b/1.txt", "b/c/1.txt", "[x].txt"):
            put(path)
        def found(pattern):
            return [path.removeprefix(f"{base}/") for path in fs.get_matching_paths(uri(pattern))]
        expect(found("a/*.txt"), ["a/1.txt", "a/2.txt"])
        expect(found("*/1.txt"), ["a/1.txt", "b/1.txt"])
        expect(found("?/*/1.*"), ["b/c/1.txt"])
        expect(found("[ab]"), ["a", "b"])
        expect(found("\\\\[x\\\\].txt"), ["[x].txt"])
        expect((found("nowhere/*"), found("a/1.txt"), found("a/4.txt")), ([], ["a/1.txt"], []))
        """,
    "missing-paths": """
        put("file")
        missing = uri("missing")
        for path in (missing, f"{missing}/below", uri("fil"), uri("file/below")):
            for ask in (fs.stat, fs.is_directory, fs.get_file_size, fs.get_children,
                        fs.delete_file, fs.delete_dir, fs.delete_recursively, fs.open,
                        fs.new_random_access_file, fs.new_read_only_memory_region_from_file):
                error = expect_error(FileNotFoundError, ask, path)
                expect((error.path, error.errno), (path, 2))
            for ask in (fs.rename_file, fs.copy_file):
                expect_error(FileNotFoundError, ask, path, uri("target"))
            expect(fs.path_exists(path), False)
        expect(fs.paths_exist([missing, uri("file")]), [False, True])
        expect(fs.get_children(base), ["file"])
        """,
    "bucket": """
        nowhere = uri("file").replace("fixture", "no-such-bucket")
        if not base.startswith("oss:"):  # that emulator has one bucket, whatever its name
            for ask in (fs.stat, fs.get_children, fs.delete_file, fs.open):
                expect_error(FileNotFoundError, ask, nowhere)
            expect_error(FileNotFoundError, fs.get_children, nowhere.rsplit("/", 2)[0])
        """,
    "names-that-are-both": """
        import warnings
        for name in ("ff", "ff2", "folder/a", "folder/deep/b"):
            put(name, b"x")
        for folder, names in (("folder", ["a", "deep"]), ("folder/deep", ["b"])):
            expect(tuple(fs.listing(uri(folder)))[:3], (names, (), frozenset()))
        expect(fs.listing(base).left_out, [])
        expect(fs.is_file_and_directory(base.rsplit("/", 1)[0]), False)
        for name in ("ff", "folder", "folder/a", "nothing"):
            expect(fs.is_file_and_directory(uri(name)), False)
        put("two/child", b"x")
        put("two", b"y")
        expect(fs.is_file_and_directory(uri("two")), True)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fs.get_children(base)
        messages = [str(one.message) for one in caught]
        expect("'two' is a file and a directory" in "".join(messages), True)
        expect(fs.listing(uri("two")).names, ["child"])
        expect_error(errors.DataLossError, lambda: fs.rename_file(uri("two"), uri("new")))
        expect([fs.path_exists(uri(name)) for name in ("two", "new")], [True, False])
        expect(any(fs.delete_recursively(uri("two"))), False)
        expect(fs.path_exists(uri("two")), False)
        """,
    "large": """
        content = os.urandom(12 << 20)
        put("large", content)
        expect(fs.read_file(uri("large")) == content, True)
        """,
    "given-up": """
        put("f", b"as it was")
        for path in ("f", "new"):
            writer = fs.new_writable_file(uri(path))
            writer.append(b"half of it")
            writer.discard()
            writer.close()
        expect_error(errors.ClosedError, writer.append, b"more")
        for mode in ("wb", "w", "ab"):
            for path in ("f", "new"):
                try:
                    with fs.open(uri(path), mode) as file:
                        file.write("x" * 200_000 if mode == "w" else bytes(200_000))
                        raise KeyboardInterrupt
                except KeyboardInterrupt:
                    pass
        expect((get("f"), fs.path_exists(uri("new"))), (b"as it was", False))
        """,
    # An append reads what is there; where that fails, the file stays as it was.
    "old-bytes": """
        import gc
        from modular_tf.filesystem.files import RandomAccessFile

        class Part(RandomAccessFile):
            def __init__(self, file):
                self.uri, self.file = file.uri, file

            def known_length(self):
                return fs.get_file_size(self.uri)

            def readinto(self, offset, buffer):
                if offset < 7 << 20:
                    return self.file.readinto(offset, buffer)
                if how == "fails":
                    raise errors.UnavailableError("it broke off")
                return 0

            def close(self):
                self.file.close()

        old = bytes(range(256)) * (12 << 12)
        whole = fs.new_random_access_file
        for how in () if base.startswith("s3:") else ("fails", "ends"):
            put("f", old)
            fs.new_random_access_file = lambda path: Part(whole(path))
            expect_error(errors.ModularTFError, fs.new_appendable_file, uri("f"))
            fs.new_random_access_file = whole
            gc.collect()
            expect(get("f", n=len(old) + 1) == old, True)
        """,
    "odd": """
        for name in ("with space", "per%20cent", "plus+", "ümlaut", "quo'te", "hash#", "a=b&c"):
            put(f"names/{name}", name.encode())
            expect(get(f"names/{name}"), name.encode())
            expect(name in fs.get_children(uri("names")), True)
            fs.rename_file(uri(f"names/{name}"), uri("names/plain"))
            expect(get("names/plain"), name.encode())
        """,
}


def test_operations_give_what_posix_would_give(object_store, run_subject):
    parts = {"S3_MULTI_PART_UPLOAD_CHUNK_SIZE": str(5 << 20)}  # else of 50 MiB
    run_subject(object_store, _OPERATIONS, env=parts)
