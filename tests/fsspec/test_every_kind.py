"""The kinds of filesystems in fsspec's registry that need no server of their own, registered.

Each serves the same tree: `a.txt` and `sub/b.txt` below a folder `top`.
"""

from __future__ import annotations

import contextlib
import io
import threading
import zipfile
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pygit2
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modular_tf import errors
from modular_tf.filesystem.fsspec_bridge import FsspecOps
from modular_tf.service.service import PluginService
from tests.fixtures.matrices import sampled

TREE = {"a.txt": b"0123456789", "sub/b.txt": b"bb"}


def filled_memory():
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    memory.store, memory.pseudo_dirs = {}, [""]
    for path, data in TREE.items():
        memory.pipe_file(f"/top/{path}", data)
    return memory


def git_repository(name, folder):
    repository = pygit2.init_repository(str(folder), initial_head="master")
    repository.index.add_all(["top"])
    author = pygit2.Signature("A", "a@example.org")
    repository.create_commit("HEAD", author, author, "a tree", repository.index.write_tree(), [])
    return fsspec.filesystem(name, path=str(folder))


def zip_archive(name, _folder):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for path, data in TREE.items():
            archive.writestr(f"top/{path}", data)
    return fsspec.filesystem(name, fo=content)


def reference(name, _folder):
    paths = {f"top/{path}": data for path, data in TREE.items()}
    return fsspec.filesystem(name, fo=paths, fs=filled_memory())


def http_client(name="http"):
    return fsspec.filesystem(name, skip_instance_cache=True)


def cached(name, folder):
    return fsspec.filesystem(name, fs=http_client(), cache_storage=str(folder / "cache"))


# By name in fsspec's registry: makes one from a folder with `top` in it; and the path of `top`.
PLAIN, DISK, FILE_URI, WEB = "top", "{folder}/top", "file://{folder}/top", "{web}/top"
KINDS = {
    **dict.fromkeys(
        ("async_wrapper", "asyncwrapper"),
        (lambda name, folder: fsspec.filesystem(name, fs=filled_memory()), PLAIN),
    ),
    **dict.fromkeys(
        ("asynclocal", "file", "local"), (lambda name, folder: fsspec.filesystem(name), DISK)
    ),
    **dict.fromkeys(("blockcache", "cached", "filecache", "simplecache"), (cached, WEB)),
    "dir": (
        lambda name, folder: fsspec.filesystem(name, path=str(folder), target_protocol="file"),
        PLAIN,
    ),
    "generic": (lambda name, folder: fsspec.filesystem(name), FILE_URI),
    "git": (git_repository, PLAIN),
    "http": (lambda name, folder: http_client(name), WEB),
    "memory": (lambda name, folder: filled_memory(), PLAIN),
    "reference": (reference, PLAIN),
    "zip": (zip_archive, PLAIN),
}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


@contextlib.contextmanager
def web_server(folder):
    """Serve a folder with listings; yield host and port. It answers ranges with the whole file."""
    handler = partial(Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def folder(tmp_path):
    for path, data in TREE.items():
        (tmp_path / "top" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "top" / path).write_bytes(data)
    return tmp_path


@pytest.fixture
def web(folder):
    with web_server(folder) as address:
        yield address


@pytest.fixture
def ops():
    """A client of web servers as operations of ours."""
    return FsspecOps(http_client())


@pytest.fixture
def serve():
    """Return the filesystem that a client is served by, under a scheme."""
    with PluginService(bundled=False) as service:
        yield lambda scheme, fs: (
            service.register_filesystem(scheme, fs),
            service.filesystem(scheme),
        )[1]


ALIASES = "asyncwrapper", "asynclocal", "local", "cached", "filecache"  # of kinds of each run


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # of fsspec's block cache
@pytest.mark.parametrize("kind", sampled(KINDS, [one for one in KINDS if one not in ALIASES]))
def test_a_tree_is_served(serve, folder, web, kind):
    """Under its own scheme, where the name of the kind is one, and another."""
    make, place = KINDS[kind]
    given, top = make(kind, folder), place.format(folder=folder, web=web)
    for scheme in ["other"] if "_" in kind else [kind, "other"]:
        base = f"{scheme}://{top}"
        fs = serve(scheme, given)

        with fs.new_random_access_file(f"{base}/a.txt") as file:
            assert file.read(2, 3) == b"234"
            assert file.read(8, 100) == b"89"
            assert file.read(100, 1) == b""
            assert file.read(0, 100) == b"0123456789"
        with fs.new_read_only_memory_region_from_file(f"{base}/sub/b.txt") as region:
            assert bytes(region.view()) == b"bb"
        assert fs.stat(f"{base}/a.txt").length == 10
        assert fs.path_exists(f"{base}/a.txt")
        assert not fs.path_exists(f"{base}/missing")
        with pytest.raises(errors.NotFoundError):
            fs.new_random_access_file(f"{base}/missing")
        assert fs.is_directory(f"{base}/sub")
        assert not fs.is_directory(f"{base}/a.txt")
        assert fs.get_children(base) == ["a.txt", "sub"]
        assert fs.get_matching_paths(f"{base}/*/b.*") == [f"{base}/sub/b.txt"]


def test_a_cache_before_a_web_server_serves_its_urls(serve, folder, web):
    storage = {"target_protocol": "http", "cache_storage": str(folder / "cache")}
    fs = serve("http", fsspec.filesystem("simplecache", **storage))

    with fs.new_random_access_file(f"http://{web}/top/a.txt") as file:
        assert file.read(2, 3) == b"234"


@pytest.mark.parametrize("scheme", ["data", "other"])
def test_a_url_of_data_is_a_file(serve, scheme):
    fs = serve(scheme, fsspec.filesystem("data"))
    uri = f"{scheme}://text/plain,see%20http://example.org/"

    with fs.new_random_access_file(uri) as file:
        assert file.read(4, 100) == b"http://example.org/"
    assert fs.stat(uri).length == 23


@pytest.mark.parametrize(
    ("kind", "uri", "path"),
    [
        ("http", "http://host/a?b=c#d", "http://host/a?b=c#d"),
        ("http", "web://host/a", "http://host/a"),
        ("http", "web://https://host/a", "https://host/a"),
        ("generic", "any://memory://a", "memory:///a"),
        ("memory", "memory://a/b", "/a/b"),
        ("memory", "other://a/b", "/a/b"),
        ("file", "file:///a/b", "/a/b"),
    ],
)
def test_a_uri_means_what_it_means_to_fsspec(kind, uri, path):
    assert FsspecOps(fsspec.filesystem(kind)).translate_name(uri) == path


# ---- Web servers ----


def test_a_file_that_a_server_gives_as_a_whole_only_is_fetched_once(web, ops, monkeypatch):
    asked, fetch = [], ops.fs.cat_file

    def noted(*names, **limits):
        asked.append(limits)
        return fetch(*names, **limits)

    monkeypatch.setattr(ops.fs, "cat_file", noted)
    with ops.new_random_access_file(f"http://{web}/top/a.txt") as file:
        assert [file.read(offset, 2) for offset in (4, 8, 0)] == [b"45", b"89", b"01"]
    assert asked == [{"start": 4, "end": 6}]


def test_ranges_and_lengths_are_right_where_a_store_tells_no_size(web, ops):
    tell = ops.fs.info
    ops.fs.info = lambda path: {**tell(path), "size": None}

    assert ops.stat(f"http://{web}/top/a.txt").length == 10
    with ops.new_random_access_file(f"http://{web}/top/a.txt") as file:
        assert file.read(4, 3) == b"456"
        assert file.read(9, 3) == b"9"


def test_a_file_that_grew_while_it_was_open_is_not_read_at_the_wrong_place(folder, web, ops):
    with ops.new_random_access_file(f"http://{web}/top/a.txt") as file:
        (folder / "top/a.txt").write_bytes(b"x" * 20)

        with pytest.raises(errors.DataLossError, match="open it again"):
            file.read(4, 3)


def test_the_time_of_change_is_read_from_a_web_server(folder, web, ops):
    found = ops.stat(f"http://{web}/top/a.txt").mtime_nsec

    assert found // 10**9 == int((folder / "top/a.txt").stat().st_mtime)


def test_links_to_other_orders_of_a_listing_are_no_files(folder, web, ops):
    page = '<a href="?C=N;O=D">Name</a><a href="#end">end</a><a href="a.txt">a</a>'
    page += '<a href="sub/b.txt">b</a><a href="../">up</a><a href="/top//x">x</a>'
    (folder / "top/index.html").write_text(page)

    assert ops.get_children(f"http://{web}/top") == ["a.txt", "sub"]


def test_a_server_that_is_gone_does_not_make_files_missing(folder, ops):
    with web_server(folder) as web:
        pass

    with pytest.raises(errors.UnavailableError, match=web.rpartition(":")[2]):
        ops.path_exists(f"http://{web}/top/a.txt")
