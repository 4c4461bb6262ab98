"""The host's own glob: filesystem-abi §7, without TensorFlow's traps."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modular_tf.errors import (
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnavailableError,
)
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.glob import compile_level
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from tests.filesystem.memory_store import filesystem_of

_FNM_PATHNAME = 1
_fnmatch = ctypes.CDLL(None).fnmatch
_FILES = (
    *("/d/a1", "/d/a2", "/d/b", "/d/.hidden", "/d/sub/f1", "/d/other/f1", "/d/sub/deep/x"),
    *("/d/w[x]", "/d/st*r", "/e/ü ü", "/top"),
)


@pytest.fixture
def store(store):
    store.dirs.update(("/d", "/d/sub", "/d/other", "/e", "/d/sub/deep"))
    store.files.update(dict.fromkeys(_FILES, b""))
    return store


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("/d/a*", ["/d/a1", "/d/a2"]),
        ("/d/a?", ["/d/a1", "/d/a2"]),
        ("/d/a[12]", ["/d/a1", "/d/a2"]),
        ("/d/a[^1]", ["/d/a2"]),
        ("/d/a[!1]", ["/d/a2"]),
        ("/d/a[0-1]", ["/d/a1"]),
        ("/d/a[2-1]", []),
        ("/d/[a-b]", ["/d/b"]),
        ("/d/[ab]*", ["/d/a1", "/d/a2", "/d/b"]),
        ("/d/?", ["/d/b"]),
        ("/d/a", []),
        ("/d/a1", ["/d/a1"]),
        ("/d/absent", []),
        ("/absent/*", []),
        ("/top/*", []),
        ("/d/*/f1", ["/d/other/f1", "/d/sub/f1"]),
        ("/d/*/*/x", ["/d/sub/deep/x"]),
        ("/*/*/*/*", ["/d/sub/deep/x"]),
        ("/*", ["/d", "/e", "/top"]),
        ("/*/a1", ["/d/a1"]),
        ("/d/s*b/f*", ["/d/sub/f1"]),
        (
            "/d/**",
            ["/d/.hidden", "/d/a1", "/d/a2", "/d/b", "/d/other", "/d/st*r", "/d/sub", "/d/w[x]"],
        ),
        ("/d/.h*", ["/d/.hidden"]),
        ("/d/w\\[x\\]", ["/d/w[x]"]),
        ("/d/w[[]x]", ["/d/w[x]"]),
        ("/d/st\\*r", ["/d/st*r"]),
        ("/d/st[*]r", ["/d/st*r"]),
        ("/d/a[1", []),
        ("/d/[", []),
        ("/d/a[/]1", []),
        ("/e/*ü", ["/e/ü ü"]),
        ("/d/{a1,a2}", []),
        ("/d/sub*/", ["/d/sub"]),
        ("/d/a1/*", []),
        ("//d//a*", ["//d/a1", "//d/a2"]),
        ("/d/../d/a*", ["/d/../d/a1", "/d/../d/a2"]),
    ],
)
def test_the_grammar(pattern, found, fs):
    assert fs.get_matching_paths(f"mem://h{pattern}") == [f"mem://h{path}" for path in found]


def test_plain_paths(store, fs):
    store.children["."] = ["d", "top"]
    store.dirs.add("d")
    store.files.update({"d/a1": b"", "d/a2": b""})

    assert fs.get_matching_paths("") == []
    assert fs.get_matching_paths("/d/a*") == ["/d/a1", "/d/a2"]
    assert fs.get_matching_paths("*") == ["./d", "./top"]  # as in TensorFlow
    assert fs.get_matching_paths("d/a*") == ["d/a1", "d/a2"]
    assert fs.get_matching_paths("d*/a1") == ["./d/a1"]


@pytest.mark.parametrize("pattern", ["mem://*/d", "mem://*", "mem://h?/d/*", "mem://[h]/d"])
def test_a_wildcard_before_the_path_is_refused(pattern, fs):
    with pytest.raises(InvalidArgumentError, match="in the path only"):
        fs.get_matching_paths(pattern)


def test_a_plugin_with_a_glob_of_its_own_is_not_asked_for_every_host():
    fs = object.__new__(PluginFilesystem)  # without a plugin: whoever called it would fail
    Filesystem.__init__(fs, "zz", "libzz.so")

    with pytest.raises(InvalidArgumentError, match="in the path only"):
        fs.get_matching_paths("zz://*/d")


def test_only_what_has_a_wildcard_is_listed(store, fs):
    fs.get_matching_paths("mem://h/d/sub/f*")

    listed = [uri for operation, uri in store.calls if operation == "get_children"]
    assert listed == ["mem://h/d/sub"]


@pytest.mark.parametrize("error", [PermissionDeniedError("mine"), UnavailableError("down")])
@pytest.mark.parametrize("pattern", ["/d/*", "/*/a1", "/d/*/f1"])
def test_errors_are_told_and_do_not_mean_no_match(error, pattern, store, fs):
    store.faults["get_children", "/d"] = store.faults["path_exists", "/d/a1"] = error
    with pytest.raises(type(error)):
        fs.get_matching_paths(f"mem://h{pattern}")


def test_a_plain_name_below_a_file_is_no_match(fs):
    """As with a wildcard in it: nothing can be there."""

    def path_exists(uri):
        raise FailedPreconditionError(f"{uri}: a parent is a file")

    fs.path_exists = path_exists
    assert fs.get_matching_paths("mem://h/top/x") == []


@pytest.mark.parametrize(
    ("children", "pattern", "found"),
    [
        (["gone", "sub"], "/d/*/f1", ["/d/sub/f1"]),
        (["sub/", "sub", "a1"], "/d/s*", ["/d/sub"]),
    ],
    ids=["an entry is gone meanwhile", "slashes and doubles"],
)
def test_odd_listings_do_not_matter(children, pattern, found, store, fs):
    store.children["/d"] = children

    assert fs.get_matching_paths(f"mem://h{pattern}") == [f"mem://h{path}" for path in found]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_a_name_that_no_child_has_is_an_error(name, store, fs):
    store.children["/d"] = ["a1", name]
    with pytest.raises(InternalError, match="no child can have"):
        fs.get_matching_paths("mem://h/d/*")


def test_what_the_plugin_finds_is_sorted_and_each_once(store):
    store.get_matching_paths = lambda _: ["mem://h/b", "mem://h/a"]

    found = filesystem_of(store, also=("get_matching_paths",)).get_matching_paths("mem://h/*")
    assert found == ["mem://h/a", "mem://h/b"]


# ---- One level, against the system's own fnmatch ----

_LEVELS = st.text("ab-*?[]!^\\.", min_size=1, max_size=7)
_NAMES = st.text("ab-*?[]!^\\.", min_size=1, max_size=4)


def _is_unusual(level):
    """Return whether the header's grammar leaves it out: open brackets, and what only POSIX has."""
    closed = 0
    inside = False
    position = 0
    while position < len(level):
        if level[position] == "\\":
            position += 1
            if position == len(level):
                return True
        elif inside and level[position] == "]" and position > closed:
            inside = False
        elif inside and level[position] == "[":
            return True
        elif not inside and level[position] == "[":
            inside = True
            closed = position + 1 + (level[position + 1 : position + 2] in ("!", "^"))
        position += 1
    return inside


@settings(max_examples=200)
@given(_LEVELS, _NAMES)
def test_levels_match_as_in_the_c_library(level, name):
    """And none is an error."""
    matched = bool(compile_level(level).fullmatch(name))
    if not _is_unusual(level):
        assert matched is (_fnmatch(level.encode(), name.encode(), _FNM_PATHNAME) == 0)
