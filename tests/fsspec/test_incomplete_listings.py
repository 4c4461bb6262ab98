"""A directory that cannot be listed ends what copies a tree: a part of it is no copy."""

from __future__ import annotations

import pytest

from modular_tf.errors import UnavailableError
from tests.fsspec.far_store import TOP


@pytest.fixture
def store(store):
    store.dirs |= {"/tree", "/tree/below"}
    store.files = {"/tree/a": b"a", "/tree/below/b": b"b"}
    return store


def fail_once(store, operation):
    """Let the first call of an operation for `below` fail, as a network does."""
    failures = [UnavailableError("no answer")]

    def fail(path):
        if path.endswith("/below") and failures:
            raise failures.pop()

    store.hooks[operation] = fail


CALLS = {
    "get": lambda far: far.get(f"{TOP}/tree", "target", recursive=True),
    "get by levels": lambda far: far.get(f"{TOP}/tree/*/b*", "target/"),
    "copy": lambda far: far.copy(f"{TOP}/tree", f"{TOP}/other", recursive=True),
    "cat": lambda far: far.cat(f"{TOP}/tree", recursive=True),
    "mv": lambda far: far.mv([f"{TOP}/tree"], f"{TOP}/other", recursive=True),
}


@pytest.mark.parametrize("call", CALLS)
def test_what_cannot_be_listed_is_told(far, store, call, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fail_once(store, "get_children")

    with pytest.raises(UnavailableError):
        CALLS[call](far)
    assert store.files["/tree/below/b"] == b"b"


def test_a_move_of_some_levels_removes_no_others(far, store):
    far.mv(f"{TOP}/tree", f"{TOP}/other", recursive=True, maxdepth=1)

    assert store.files["/tree/below/b"] == b"b"
    assert list(store.files.values()).count(b"a") == 1


def test_a_directory_that_could_not_be_looked_at_is_looked_at_again(far, store, tmp_path):
    fail_once(store, "stat")
    far.get(f"{TOP}/tree", str(tmp_path / "target"), recursive=True)

    assert (tmp_path / "target" / "below" / "b").read_bytes() == b"b"
