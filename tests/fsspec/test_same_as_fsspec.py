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
def theirs():
    """fsspec's own filesystem in memory."""
    memory = MemoryFileSystem(global_store=False, skip_instance_cache=True)
    memory.store, memory.pseudo_dirs = {}, [""]
    for path, data in FILES.items():
        memory.pipe_file(f"/{path}", data)
    memory.mkdir("/top/empty")
    return memory


@pytest.fixture(scope="module")
def ours(theirs):
    """Our filesystem over it."""
    with PluginService(bundled=False, config=Config(calls_at_once=4)) as service:
        service.register_filesystem("far", theirs)
        yield ModularFileSystem("far", service=service)


many = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
DIRECTORIES = ["top", "top/sub", "top/sub/deep", "top/empty"]
places = st.sampled_from([*FILES, *DIRECTORIES, "missing", "top/x"])
names = st.sampled_from([*(path for path in FILES if "[" not in path), "missing"])
limits = st.one_of(st.none(), st.integers(-1100, 1100))


def rooted(paths):
    """Return paths as fsspec's memory has them."""
    return [f"/{path}" for path in paths]


def plain(found):
    """Return an answer of fsspec's with paths as ours, without slashes before them."""
    if isinstance(found, dict):
        return {plain(path): value for path, value in found.items()}
    if isinstance(found, list):
        return [plain(one) for one in found]
    return found.lstrip("/") if isinstance(found, str) else found


def sizes(found):
    return {plain(path): (entry["size"], entry["type"]) for path, entry in found.items()}


# ---- Contents ----


@many
@given(
    st.lists(st.tuples(st.sampled_from(list(FILES)), limits, limits), max_size=12),
    st.sampled_from([None, 0, 7, 5000]),
)
def test_ranges_are_those_of_the_whole_contents(ours, wanted, gap):
    paths, starts, ends = ([one[n] for one in wanted] for n in range(3))

    found = ours.cat_ranges(paths, starts, ends, max_gap=gap, on_error="raise")
    assert found == [FILES[path][start:end] for path, start, end in wanted]
    assert [ours.cat_file(*one) for one in wanted] == found


@many
@given(st.lists(st.tuples(places, limits, limits), max_size=8))
def test_errors_of_ranges_stand_where_fsspec_has_them(ours, theirs, wanted):
    paths, starts, ends = ([one[n] for one in wanted] for n in range(3))
    expected = theirs.cat_ranges(rooted(paths), starts, ends)
    found = ours.cat_ranges(paths, starts, ends)

    for mine, other in zip(found, expected, strict=True):
        assert mine == other or (isinstance(mine, OSError) and isinstance(other, OSError))


@many
@given(st.lists(names, min_size=1), st.sampled_from(["return", "omit"]))
def test_many_files_are_read_as_fsspec_reads_them(ours, theirs, paths, on_error):
    expected = plain(theirs.cat(rooted(paths), on_error=on_error))
    found = ours.cat(paths, on_error=on_error)

    assert list(found) == list(expected)
    for path, data in found.items():
        assert data == expected[path] or isinstance(data, FileNotFoundError)


def test_a_tree_is_read_without_its_directories(ours):
    expected = {path: data for path, data in FILES.items() if path.startswith("top/sub/")}
    assert ours.cat("top/sub", recursive=True) == expected


# ---- Names ----

PATTERNS = [
    *("top/*", "top/*.csv", "top/*/a*", "top/*/", "top/s*/d*/c", "top/*/*/?", "*", "*/", "l?ne"),
    *("top/[os]*/a?", "top/**", "top/**/a.csv", "top/*/deep", "top/*/deep/", "missing/*"),
    *("top/a.csv", "top/a.csv/*", "top/sub/deep/[[]d]", "top/*/missing", "lone/*"),
    *("t*/sub/*.csv", "top/*/a.csv/*"),
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_patterns_match_what_fsspec_matches(ours, theirs, pattern):
    expected, found = (
        fs.glob(p, detail=True) for fs, p in ((theirs, f"/{pattern}"), (ours, pattern))
    )

    assert sizes(found) == sizes(expected)
    assert list(found) == plain(list(expected))
    assert ours.glob(pattern) == plain(theirs.glob(f"/{pattern}"))


@many
@given(places, st.sampled_from([None, 1, 2, 3]), st.booleans())
def test_trees_are_found_as_fsspec_finds_them(ours, path, maxdepth, withdirs):
    options = {"maxdepth": maxdepth, "withdirs": withdirs}
    expected = AbstractFileSystem.find(ours, path, detail=True, **options)

    assert ours.find(path, **options) == list(expected)
    found = ours.find(path, detail=True, **options)
    assert {name: entry or found[name] for name, entry in expected.items()} == found
    assert ours.du(path, total=False, **options) == {n: e["size"] for n, e in found.items()}


@many
@given(places, st.sampled_from([None, 1, 2]), st.booleans(), st.booleans())
def test_trees_are_walked_as_fsspec_walks_them(ours, path, maxdepth, topdown, detail):
    options = {"maxdepth": maxdepth, "topdown": topdown, "detail": detail}

    assert list(ours.walk(path, **options)) == list(AbstractFileSystem.walk(ours, path, **options))


def test_a_tree_that_cannot_be_listed_is_told_as_the_caller_says(ours):
    failures = []
    assert list(ours.walk("missing")) == []
    assert list(ours.walk("missing", on_error=failures.append)) == []
    assert isinstance(failures[0], FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        list(ours.walk("missing", on_error="raise"))
    with pytest.raises(ValueError, match="maxdepth"):
        ours.find("top", maxdepth=0)


@many
@given(
    st.lists(st.one_of(places, st.sampled_from(PATTERNS)), min_size=1, max_size=3),
    st.booleans(),
    st.sampled_from([None, 1, 2]),
)
def test_paths_are_expanded_as_fsspec_expands_them(ours, theirs, paths, recursive, maxdepth):
    options = {"recursive": recursive, "maxdepth": maxdepth}
    try:
        expected = theirs.expand_path(rooted(paths), **options)
    except Exception:  # noqa: BLE001  (whatever it is in fsspec's memory)
        with pytest.raises(FileNotFoundError):
            ours.expand_path(paths, **options)
    else:
        assert ours.expand_path(paths, **options) == plain(expected)
