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
from modular_tf.filesystem.glob import compile_level, has_magic
from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from tests.filesystem.memory_store import MemoryStore, filesystem_of

_FNM_PATHNAME = 1
_fnmatch = ctypes.CDLL(None).fnmatch


@pytest.fixture
def store():
    made = MemoryStore()
    made.dirs.update(("/d", "/d/sub", "/d/other", "/e", "/d/sub/deep"))
    made.files.update(
        dict.fromkeys(
            ["/d/a1", "/d/a2", "/d/b", "/d/.hidden", "/d/sub/f1", "/d/other/f1", "/d/sub/deep/x",
             "/d/w[x]", "/d/st*r", "/e/ü ü", "/top"],
            b"",
        )
    )  # fmt: skip
    return made


@pytest.fixture
def fs(store):
    return filesystem_of(store)


_ROOT = "mem://h"


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
    assert fs.get_matching_paths(_ROOT + pattern) == [_ROOT + path for path in found]


def test_plain_paths(store):
    fs = filesystem_of(store)
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
    fs.get_matching_paths(f"{_ROOT}/d/sub/f*")

    assert [call for call in store.calls if call[0] == "get_children"] == [
        ("get_children", f"{_ROOT}/d/sub")
    ]


@pytest.mark.parametrize("error", [PermissionDeniedError("mine"), UnavailableError("down")])
@pytest.mark.parametrize("pattern", ["/d/*", "/*/a1", "/d/*/f1"])
def test_errors_are_told_and_do_not_mean_no_match(error, pattern, store, fs):
    store.faults["get_children", "/d"] = store.faults["path_exists", "/d/a1"] = error
    with pytest.raises(type(error)):
        fs.get_matching_paths(_ROOT + pattern)


def test_a_plain_name_below_a_file_is_no_match(store, fs):
    """As with a wildcard in it: nothing can be there."""

    def path_exists(uri):
        raise FailedPreconditionError(f"{uri}: a parent is a file")

    fs.path_exists = path_exists

    assert fs.get_matching_paths("mem://h/top/x") == []


def test_an_entry_that_is_gone_meanwhile_is_no_match(store, fs):
    store.children["/d"] = ["gone", "sub"]

    assert fs.get_matching_paths(f"{_ROOT}/d/*/f1") == [f"{_ROOT}/d/sub/f1"]


@pytest.mark.parametrize("name", ["", ".", "..", "a/b"])
def test_a_name_that_no_child_has_is_an_error(name, store, fs):
    store.children["/d"] = ["a1", name]
    with pytest.raises(InternalError, match="no child can have"):
        fs.get_matching_paths(f"{_ROOT}/d/*")


def test_trailing_slashes_and_doubles_of_children_do_not_matter(store, fs):
    store.children["/d"] = ["sub/", "sub", "a1"]

    assert fs.get_matching_paths(f"{_ROOT}/d/s*") == [f"{_ROOT}/d/sub"]


def test_what_the_plugin_finds_is_sorted_and_each_once(fs):
    fs.implementation.get_matching_paths = lambda _: ["mem://h/b", "mem://h/a"]
    fs = type(fs)("mem", fs.implementation)

    assert fs.get_matching_paths("mem://h/*") == ["mem://h/a", "mem://h/b"]


# ---- One level, against the system's own fnmatch ----

_LEVELS = st.text("ab-*?[]!^\\.", min_size=1, max_size=7)
_NAMES = st.text("ab-*?[]!^\\.", min_size=1, max_size=4)


def _unusual(level):
    """Leave out what the header's grammar has not: open brackets, and what only POSIX defines."""
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


@settings(max_examples=1500, deadline=None)
@given(_LEVELS, _NAMES)
def test_levels_match_as_in_the_c_library(level, name):
    if not _unusual(level):
        matched = _fnmatch(level.encode(), name.encode(), _FNM_PATHNAME) == 0
        assert bool(compile_level(level).fullmatch(name)) is matched


@given(_LEVELS, _NAMES)
def test_no_level_is_an_error(level, name):
    compile_level(level).fullmatch(name)


def test_what_is_magic():
    assert all(has_magic(text) for text in ("*", "a?", "[", "\\"))
    assert not any(has_magic(text) for text in ("", "a]b", "{}", "~", "a-b"))
