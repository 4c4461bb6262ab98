"""URIs and paths: the table of `filesystem-abi` §5, in Python and in C."""

from __future__ import annotations

import pytest

from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.registry import FilesystemRegistry
from modular_tf.filesystem.uri import (
    create_uri,
    parse_uri,
    scheme_of,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.strings import encode
from tests.filesystem.plugins import service_of

# URI, its scheme, host and path, and the default translation.
_TABLE = [
    ("", "", "", "", ""),
    ("/", "", "", "/", "/"),
    ("//", "", "", "//", "/"),
    ("/..", "", "", "/..", "/"),
    ("/a/b/../../..", "", "", "/a/b/../../..", "/"),
    (".", "", "", ".", "."),
    ("..", "", "", "..", ".."),
    ("a/../..", "", "", "a/../..", ".."),
    ("a/../../b", "", "", "a/../../b", "../b"),
    ("//a//b", "", "", "//a//b", "/a/b"),
    ("..b/./x", "", "", "..b/./x", "..b/x"),
    ("zz://", "zz", "", "", "/"),
    ("zz://h", "zz", "h", "", "/"),
    ("zz://h/p", "zz", "h", "/p", "/p"),
    ("zz://h/../p", "zz", "h", "/../p", "/p"),
    ("S3://Bucket/Key", "S3", "Bucket", "/Key", "/Key"),
    ("s3-x://h/p", "", "", "s3-x://h/p", "s3-x:/h/p"),
    ("a://h/p", "", "", "a://h/p", "a:/h/p"),
    ("C:/d/f", "", "", "C:/d/f", "C:/d/f"),
    ("c://d/f", "", "", "c://d/f", "c:/d/f"),
    ("zz:/h/p", "", "", "zz:/h/p", "zz:/h/p"),
    ("://h/p", "", "", "://h/p", ":/h/p"),
    ("zz://h/p?q=/../1", "zz", "h", "/p?q=/../1", "/1"),
    ("zz://h/%2e%2e/x", "zz", "h", "/%2e%2e/x", "/%2e%2e/x"),
    ("zz://h\\p", "zz", "h\\p", "", "/"),
    ("zz://u@h:1?x#y/p", "zz", "u@h:1?x#y", "/p", "/p"),
    ("z.9Z://h/p", "z.9Z", "h", "/p", "/p"),
    ("z+z://h/p", "", "", "z+z://h/p", "z+z:/h/p"),
    ("zz://h/a\nb", "zz", "h", "/a\nb", "/a\nb"),
    ("zz://h/zz://i/j", "zz", "h", "/zz://i/j", "/zz:/i/j"),
    ("zz://\udcff/\udcfe", "zz", "\udcff", "/\udcfe", "/\udcfe"),
]


def _split_in_c(uri):
    encoded = encode(uri)
    scheme_length = ffi.new("size_t *")
    offset = lib.mtf_uri_path_offset(ffi.new("char[]", encoded), scheme_length)
    if not scheme_length[0]:
        assert offset == 0
        return b"", b"", encoded
    host_at = scheme_length[0] + 3
    return encoded[: scheme_length[0]], encoded[host_at:offset], encoded[offset:]


@pytest.mark.parametrize(("uri", "scheme", "host", "path", "translated"), _TABLE, ids=repr)
def test_the_table(uri, scheme, host, path, translated):
    assert parse_uri(uri) == (scheme, host, path)
    assert scheme_of(uri) == scheme
    assert create_uri(scheme, host, path) == uri
    assert _split_in_c(uri) == tuple(map(encode, (scheme, host, path)))
    assert Filesystem(scheme, "test").translate_name(uri) == translated


@pytest.fixture(scope="module")
def untranslating(fixture_plugin):
    """A plugin that leaves the translation to the host."""
    with service_of(fixture_plugin("minimal", scheme="zz")) as service:
        yield service.filesystem("zz")


def test_the_plugin_without_a_translation_gets_the_same_names(untranslating):
    translated = {row[0]: untranslating.translate_name(row[0]) for row in _TABLE}

    assert translated == {row[0]: row[4] for row in _TABLE}


@pytest.mark.parametrize("length", [0, 505, 509, 510, 511, 512, 513, 600, 70_000])
def test_names_around_the_size_of_the_hosts_own_buffer(length, untranslating):
    name = "/" + "x" * length

    assert untranslating.translate_name(f"zz://h{name}") == name
    assert untranslating.translate_name(name[1:]) == name[1:]


def test_lookups_are_by_exact_scheme():
    registry = FilesystemRegistry()
    for scheme in ("", "s3", "S3"):
        registry.register(Filesystem(scheme, f"plugin of {scheme!r}"))

    assert registry.for_uri("s3://b/k").scheme == "s3"
    assert registry.for_uri("S3://b/k").scheme == "S3"
    for plain in ("/x", "x", "", "s3:/b/k", "a://h", "s3-x://h/p", "C:\\x"):
        assert registry.for_uri(plain).scheme == ""
    with pytest.raises(NotImplementedError, match="'s4'"):
        registry.for_uri("s4://b/k")
