"""The POSIX plugin expands globs itself; it must say what the host's default would say."""

import os
import random

import pytest

from modular_tf.errors import InvalidArgumentError, ModularTFError
from modular_tf.filesystem.glob import matching_paths

LETTERS = ["a", "b", "ü", "-", "]", "[", "*", "?", "\\", "^", "!", ".", "\udcff"]
PIECES = [*LETTERS, "*", "?", "/", "[a-z]", "[^a]", "[!ü]", "[b-a]", "[]a]", "\\*", "[\\]a]"]


def build_tree(top, chosen):
    for _ in range(200):
        name = "".join(chosen.choices(LETTERS, k=chosen.randint(1, 4)))
        if name in (".", "..") or os.path.lexists(top / name):
            continue
        if chosen.random() < 0.3:
            (top / name).mkdir()
            for inner in chosen.choices(LETTERS[:6], k=3):
                (top / name / inner).touch()
        else:
            (top / name).touch()
    (top / "link").symlink_to("nothing")
    (top / "self").symlink_to(top)


def answer(call, *arguments):
    try:
        return call(*arguments)
    except ModularTFError as error:
        return type(error)


def test_they_agree_on_random_patterns(service, tmp_path):
    chosen = random.Random(0)
    build_tree(tmp_path, chosen)
    filesystem = service.filesystem("")
    for _ in range(500):
        pattern = "".join(chosen.choices(PIECES, k=chosen.randint(1, 6)))
        if ".." in pattern or not any(character in pattern for character in "*?[\\"):
            continue
        uri = f"{tmp_path}/{pattern}"
        assert answer(filesystem.get_matching_paths, uri) == answer(
            matching_paths, filesystem, uri
        ), pattern


LOCAL = ["", "*", "./*", "../*", "sub/*", "*/x", "sub", "none", "sub/", "sub//x", "//", "/"]
URIS = ["file://", "file:///", "file://host/*", "file:///*/tmp"]


@pytest.mark.parametrize(
    ("scheme", "pattern"), [*(("", each) for each in LOCAL), *(("file", each) for each in URIS)]
)
def test_they_agree_on_literal_patterns_and_uris(service, tmp_path, monkeypatch, scheme, pattern):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "x").touch()
    monkeypatch.chdir(tmp_path)
    filesystem = service.filesystem(scheme)

    assert filesystem.get_matching_paths(pattern) == matching_paths(filesystem, pattern)


def test_the_plugin_refuses_wildcards_in_the_host(service):
    with pytest.raises(InvalidArgumentError, match="wildcards may stand in the path only"):
        service.filesystem("file").get_matching_paths("file://h*/x")
