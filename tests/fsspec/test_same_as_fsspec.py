"""What the operations give is what fsspec's own implementations give, on the same files."""

from __future__ import annotations

import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.configuration import Config
from modular_tf.service.service import PluginService

FILES = {
    "top/a.csv": bytes(range(256)) * 3,
    "top/b.txt": b"",
    "top/sub/a.csv": b"0123456789",
    "top/sub/deep/c": b"c" * 1000,
    "top/sub/deep/[d]": b"d",
    "top/other/a1": b"1",
    "top/other/a2": b"22",
    "lone": b"lone",
}


@pytest.fixture(scope="module")
def both():
    """fsspec's own filesystem in memory, and ours over it."""
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    memory.store, memory.pseudo_dirs = {}, [""]
    for path, data in FILES.items():
        memory.pipe_file(f"/{path}", data)
    memory.mkdir("/top/empty")
    with PluginService(bundled=False, config=Config(calls_at_once=4)) as service:
        service.register_filesystem("far", memory)
        yield memory, ModularFileSystem("far", service=service)


many = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
DIRECTORIES = ["top", "top/sub", "top/sub/deep", "top/empty"]
places = st.sampled_from([*FILES, *DIRECTORIES, "missing", "top/x"])
names = st.sampled_from([*(path for path in FILES if "[" not in path), "missing"])
limits = st.one_of(st.none(), st.integers(-1100, 1100))


def outcome(call):
    try:
        return call()
    except Exception as error:  # noqa: BLE001  (it is compared)
        return type(error).__mro__


def plain(found):
    """Return an answer of fsspec's with paths as ours, without slashes before them."""
    if isinstance(found, dict):
        return {plain(path): value for path, value in found.items()}
    if isinstance(found, list):
        return [plain(one) for one in found]
    return found.lstrip("/") if isinstance(found, str) else found


def sizes(found):
    return {plain(path): (entry["size"], entry["type"]) for path, entry in found.items()}


@many
@given(
    st.lists(st.tuples(st.sampled_from(list(FILES)), limits, limits), max_size=12),
    st.sampled_from([None, 0, 7, 5000]),
)
def test_ranges_are_those_of_the_whole_contents(both, wanted, gap):
    _, fs = both
    paths, starts, ends = ([one[n] for one in wanted] for n in range(3))

    found = fs.cat_ranges(paths, starts, ends, max_gap=gap, on_error="raise")
    assert found == [FILES[path][start:end] for path, start, end in wanted]
    assert [fs.cat_file(*one) for one in wanted] == found


@many
@given(st.lists(st.tuples(places, limits, limits), max_size=8))
def test_errors_of_ranges_stand_where_fsspec_has_them(both, wanted):
    memory, fs = both
    paths, starts, ends = ([one[n] for one in wanted] for n in range(3))
    expected = memory.cat_ranges([f"/{path}" for path in paths], starts, ends)
    found = fs.cat_ranges(paths, starts, ends)

    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == theirs or (isinstance(ours, OSError) and isinstance(theirs, OSError))


@many
@given(st.lists(names, min_size=1), st.sampled_from(["return", "omit"]))
def test_many_files_are_read_as_fsspec_reads_them(both, paths, on_error):
    memory, fs = both
    expected = plain(memory.cat([f"/{path}" for path in paths], on_error=on_error))
    found = fs.cat(paths, on_error=on_error)

    assert list(found) == list(expected)
    for path, data in found.items():
        assert data == expected[path] or isinstance(data, FileNotFoundError)


PATTERNS = [
    "top/*", "top/*.csv", "top/*/a*", "top/*/", "top/s*/d*/c", "top/*/*/?", "*", "*/", "l?ne",
    "top/[os]*/a?", "top/**", "top/**/a.csv", "top/*/deep", "top/*/deep/", "missing/*", "top/a.csv",
    "top/a.csv/*", "top/sub/deep/[[]d]", "top/*/missing", "lone/*", "t*/sub/*.csv", "top/*/a.csv/*",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("detail", [False, True])
def test_patterns_match_what_fsspec_matches(both, pattern, detail):
    memory, fs = both
    expected = memory.glob(f"/{pattern}", detail=detail)
    found = fs.glob(pattern, detail=detail)

    if detail:
        assert sizes(found) == sizes(expected)
        assert list(found) == plain(list(expected))
    else:
        assert found == plain(expected)


@many
@given(places, st.sampled_from([None, 1, 2, 3]), st.booleans())
def test_trees_are_found_as_fsspec_finds_them(both, path, maxdepth, withdirs):
    _, fs = both
    options = {"maxdepth": maxdepth, "withdirs": withdirs}
    expected = AbstractFileSystem.find(fs, path, detail=True, **options)

    assert fs.find(path, **options) == list(expected)
    found = fs.find(path, detail=True, **options)
    assert {name: e or found[name] for name, e in expected.items()} == found
    assert fs.du(path, total=False, **options) == {n: e["size"] for n, e in found.items()}


@many
@given(places, st.sampled_from([None, 1, 2]), st.booleans(), st.booleans())
def test_trees_are_walked_as_fsspec_walks_them(both, path, maxdepth, topdown, detail):
    _, fs = both
    options = {"maxdepth": maxdepth, "topdown": topdown, "detail": detail}

    assert list(fs.walk(path, **options)) == list(AbstractFileSystem.walk(fs, path, **options))


def test_a_walk_passes_over_what_the_caller_removes(both):
    _, fs = both
    seen = []
    for path, dirs, _ in fs.walk("top"):
        seen.append(path)
        dirs[:] = [name for name in dirs if name != "sub"]

    assert seen == ["top", "top/empty", "top/other"]


def test_a_tree_that_cannot_be_listed_is_told_as_the_caller_says(both):
    _, fs = both
    told = []

    assert list(fs.walk("missing")) == []
    assert list(fs.walk("missing", on_error=told.append)) == []
    assert isinstance(told[0], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        list(fs.walk("missing", on_error="raise"))
    with pytest.raises(ValueError, match="maxdepth"):
        fs.find("top", maxdepth=0)


@many
@given(
    st.lists(st.one_of(places, st.sampled_from(PATTERNS)), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([None, 1, 2]),
)
def test_paths_are_expanded_as_fsspec_expands_them(both, paths, recursive, maxdepth):
    memory, fs = both
    options = {"recursive": recursive, "maxdepth": maxdepth}
    expected = outcome(lambda: memory.expand_path([f"/{path}" for path in paths], **options))

    found = outcome(lambda: fs.expand_path(paths, **options))
    if isinstance(expected, list):
        assert found == plain(expected)
    else:
        assert FileNotFoundError in found


def test_a_tree_is_read_without_its_directories(both):
    _, fs = both

    assert fs.cat("top/sub", recursive=True) == {
        path: data for path, data in FILES.items() if path.startswith("top/sub/")
    }
