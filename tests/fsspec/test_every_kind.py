"""Every kind of filesystem in fsspec's registry that needs no server of its own, registered."""

from __future__ import annotations

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.registry import known_implementations

from modular_tf import errors
from modular_tf.filesystem.fsspec_bridge import FsspecOps
from modular_tf.service.service import PluginService
from tests.fsspec.kinds import KINDS, NOT_HERE, TREE, WITHOUT_TREES, web_server


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
def service():
    with PluginService(bundled=False) as service:
        yield service


def serve(service, scheme, fs):
    service.register_filesystem(scheme, fs)
    return service.filesystem(scheme)


def schemes_of(kind):
    """Return the schemes to serve a kind under: its own, where it is one, and another."""
    return ["other"] if "_" in kind else [kind, "other"]


def test_each_kind_of_fsspec_itself_is_tried_or_named():
    own = {
        name
        for name, known in known_implementations.items()
        if known["class"].startswith("fsspec.")
    }

    assert own <= {*KINDS, *NOT_HERE, *WITHOUT_TREES}
    assert not set(KINDS) & {*NOT_HERE, *WITHOUT_TREES}


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")  # of fsspec's block cache
@pytest.mark.parametrize(
    ("kind", "scheme"), [(kind, scheme) for kind in KINDS for scheme in schemes_of(kind)]
)
def test_a_tree_is_served(service, folder, web, kind, scheme):
    given, top = KINDS[kind](kind, folder, web)
    base = f"{scheme}://{top}"
    fs = serve(service, scheme, given)

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


def test_a_cache_before_a_web_server_serves_its_urls(service, folder, web):
    cache = fsspec.filesystem(
        "simplecache", target_protocol="http", cache_storage=str(folder / "cache")
    )
    fs = serve(service, "http", cache)

    with fs.new_random_access_file(f"http://{web}/top/a.txt") as file:
        assert file.read(2, 3) == b"234"


@pytest.mark.parametrize("scheme", ["data", "other"])
def test_a_url_of_data_is_a_file(service, scheme):
    fs = serve(service, scheme, fsspec.filesystem("data"))
    uri = f"{scheme}://text/plain,see%20http://example.org/"

    with fs.new_random_access_file(uri) as file:
        assert file.read(4, 100) == b"http://example.org/"
    assert fs.stat(uri).length == 23


@pytest.mark.parametrize(
    ("kind", "uri", "path"),
    [
        ("http", "http://host/a?b=c#d", "http://host/a?b=c#d"),
        ("http", "https://host/a", "https://host/a"),
        ("http", "web://host/a", "http://host/a"),
        ("http", "web://https://host/a", "https://host/a"),
        ("generic", "memory://a", "memory:///a"),
        ("generic", "any://memory://a", "memory:///a"),
        ("memory", "memory://a/b", "/a/b"),
        ("memory", "other://a/b", "/a/b"),
        ("memory", "a/b", "/a/b"),
        ("file", "file:///a/b", "/a/b"),
        ("file", "other:///a/b", "/a/b"),
    ],
)
def test_a_uri_means_what_it_means_to_fsspec(kind, uri, path):
    assert FsspecOps(fsspec.filesystem(kind)).translate_name(uri) == path


def test_a_cache_whose_filesystem_comes_later_is_named_by_itself():
    """So does a worker of dask, which makes its filesystem elsewhere."""

    class Later(MemoryFileSystem):
        cachable = False
        target_protocol = "memory"
        fs = None

    assert FsspecOps(Later()).translate_name("other://a/b") == "/a/b"


def test_a_file_that_a_server_gives_as_a_whole_only_is_fetched_once(folder, web, monkeypatch):
    given = fsspec.filesystem("http", skip_instance_cache=True)
    asked = []
    fetch = given.cat_file
    monkeypatch.setattr(
        given, "cat_file", lambda *names, **limits: asked.append(limits) or fetch(*names, **limits)
    )

    with FsspecOps(given).new_random_access_file(f"http://{web}/top/a.txt") as file:
        assert [file.read(offset, 2) for offset in (4, 8, 0)] == [b"45", b"89", b"01"]
    assert asked == [{"start": 4, "end": 6}]


@pytest.mark.parametrize("size", [None, 10])
def test_ranges_and_lengths_are_right_whether_a_store_tells_the_size_or_not(size, folder, web):
    given = fsspec.filesystem("http", skip_instance_cache=True)
    tell = given.info
    given.info = lambda path: {**tell(path), "size": size}
    ops = FsspecOps(given)

    assert ops.stat(f"http://{web}/top/a.txt").length == 10
    with ops.new_random_access_file(f"http://{web}/top/a.txt") as file:
        assert file.read(4, 3) == b"456"
        assert file.read(9, 3) == b"9"


def test_a_file_that_grew_while_it_was_open_is_not_read_at_the_wrong_place(folder, web):
    ops = FsspecOps(fsspec.filesystem("http", skip_instance_cache=True))
    with ops.new_random_access_file(f"http://{web}/top/a.txt") as file:
        (folder / "top/a.txt").write_bytes(b"x" * 20)

        with pytest.raises(errors.DataLossError, match="open it again"):
            file.read(4, 3)


def test_the_time_of_change_is_read_from_a_web_server(folder, web):
    ops = FsspecOps(fsspec.filesystem("http", skip_instance_cache=True))
    told = ops.stat(f"http://{web}/top/a.txt").mtime_nsec

    assert told // 10**9 == int((folder / "top/a.txt").stat().st_mtime)


def test_links_to_other_orders_of_a_listing_are_no_files(folder, web):
    page = '<a href="?C=N;O=D">Name</a><a href="#end">end</a><a href="a.txt">a</a>'
    page += '<a href="sub/b.txt">b</a><a href="../">up</a><a href="/top//x">x</a>'
    (folder / "top/index.html").write_text(page)
    ops = FsspecOps(fsspec.filesystem("http", skip_instance_cache=True))

    assert ops.get_children(f"http://{web}/top") == ["a.txt", "sub"]


def test_a_server_that_is_gone_does_not_make_files_missing(folder):
    with web_server(folder) as web:
        pass
    ops = FsspecOps(fsspec.filesystem("http", skip_instance_cache=True))

    with pytest.raises(errors.UnavailableError, match=web.rpartition(":")[2]):
        ops.path_exists(f"http://{web}/top/a.txt")
