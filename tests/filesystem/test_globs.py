"""The host's own glob: filesystem-abi §7, without TensorFlow's traps."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from modular_tf.errors import (
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
        ("/d/a[12]", ["/d/a1", "/d/a2"]),
        ("/d/a[^1]", ["/d/a2"]),
        ("/d/a[2-1]", []),
        ("/d/a1", ["/d/a1"]),
        ("/d/absent", []),
        ("/absent/*", []),
        ("/top/*", []),
        ("/top/x", []),
        ("/d/*/f1", ["/d/other/f1", "/d/sub/f1"]),
        ("/d/*/*/x", ["/d/sub/deep/x"]),
        ("/*", ["/d", "/e", "/top"]),
        (
            "/d/**",
            ["/d/.hidden", "/d/a1", "/d/a2", "/d/b", "/d/other", "/d/st*r", "/d/sub", "/d/w[x]"],
        ),
        ("/d/w\\[x\\]", ["/d/w[x]"]),
        ("/d/a[1", []),
        ("/d/[", []),
        ("/d/a[/]1", []),
        ("/e/*ü", ["/e/ü ü"]),
        ("/d/{a1,a2}", []),
        ("/d/sub*/", ["/d/sub"]),
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

_PARTS = ("a", "b", "-", "*", "?", "[ab]", "[!a]", "[^b]", "[a-c]", "[]a]", "[*]", r"\*", "^")
_LEVELS = st.lists(st.sampled_from(_PARTS), min_size=1, max_size=5).map("".join)
_NAMES = st.text("ab-*?[]!^.", min_size=1, max_size=4)


@settings(max_examples=200)
@given(_LEVELS, _NAMES)
def test_levels_match_as_in_the_c_library(level, name):
    matched = bool(compile_level(level).fullmatch(name))
    assert matched is (_fnmatch(level.encode(), name.encode(), _FNM_PATHNAME) == 0)
