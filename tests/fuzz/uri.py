"""Target: URIs and paths, against a plain statement of the rules and two parsers in C++.

The rules are TensorFlow's (`filesystem-abi` §5); `_TABLE` in `tests.filesystem.test_uris` holds
what TensorFlow itself answers.
"""

from __future__ import annotations

import ctypes
import posixpath
import string
from functools import cache

from modular_tf.errors import InvalidArgumentError
from modular_tf.filesystem.filesystem import Filesystem
from modular_tf.filesystem.uri import (
    clean_path,
    create_uri,
    join_path,
    parse_uri,
    scheme_of,
    split_last,
)
from modular_tf.native.ffi import ffi, lib
from modular_tf.native.runtime_library import runtime_path
from modular_tf.native.strings import encode

_LETTERS = frozenset(string.ascii_letters)
_MORE = _LETTERS | frozenset(string.digits + ".")
_PIECES = (
    *("zz", "s3", "S3", "a", "C", "file", "ram", "z.9", "9", "viewfs", "x" * 40),
    *("://", "://", "://", ":/", ":", "/", "/", "//", "///", "\\", "."),
    *("..", "...", "./", "../", "/..", "/.", "h", "u@h:1", "?", "#", "%2e%2e", "*", "[", "+"),
    *("-", "_", " ", "\n", "\r", "\t", "\x7f", "é", "ü", "\u0130", "\u212a", "\uff0f", "\u2028"),
    *("\U0001f600", "\udcff", "\udc80\udcfe", "\ud800", "\0"),
)
_SCHEMES = ("zz", "s3", "z.9", "a", "9z", "ram", "", "z-z", "é3", "S" * 300, "x.")
_SEPARATORS = "/:.\\ "


def make(dice):
    return _text(dice, 10), _text(dice, 4)


def check(given):
    """Split, clean, translate and join, each as the rules say."""
    uri, name = given
    scheme, host, path = expected = _split(uri)
    assert parse_uri(uri) == expected
    assert scheme_of(uri) == scheme
    assert create_uri(scheme, host, path) == uri
    _check_parts(uri, expected)
    _check_join(uri, name)
    try:
        raw = encode(uri)
    except InvalidArgumentError:
        assert "\0" in uri or not _has_bytes(uri)
        _check_refused(uri, clean_path, Filesystem(scheme, "fuzz").translate_name)
        return "no bytes"
    _check_in_c(raw, tuple(map(encode, expected)))
    assert clean_path(uri) == _cleaned(uri)
    translated = _cleaned(path or "/") if uri else ""
    assert Filesystem(scheme, "fuzz").translate_name(uri) == translated
    return "uri" if scheme else "path"


def _split(uri):
    """Split by walking, as §5 puts it."""
    at = 0
    while at < len(uri) and uri[at] in (_MORE if at else _LETTERS):
        at += 1
    if at < 2 or uri[at : at + 3] != "://":
        return "", "", uri
    rest = uri[at + 3 :]
    end = rest.find("/")
    return uri[:at], rest if end < 0 else rest[:end], "" if end < 0 else rest[end:]


def _cleaned(path):
    parts = []
    for part in path.split("/"):
        if part == ".." and (not parts or parts[-1] == ".."):
            parts += [] if path.startswith("/") else [part]
        elif part == "..":
            parts.pop()
        elif part not in ("", "."):
            parts.append(part)
    cleaned = ("/" if path.startswith("/") else "") + "/".join(parts) or "."
    normal = posixpath.normpath(path)
    assert cleaned == (normal[1:] if normal.startswith("//") else normal)
    return cleaned


def _check_parts(uri, parts):
    scheme, host, path = parts
    before = uri[: len(uri) - len(path)]
    directory, slash, name = path.rpartition("/")
    parent = before + (directory or slash)
    assert split_last(uri) == (parent, name if slash else path)
    assert bool(scheme) or not host


def _check_join(left, right):
    joined = join_path(left, right)
    if not left or not right:
        assert joined == left + right
        return
    head = left if left.endswith("/") else left + "/"
    assert joined == head + right.removeprefix("/")


def _check_in_c(raw, expected):
    length = ffi.new("size_t *")
    offset = lib.mtf_uri_path_offset(ffi.new("char[]", raw), length)
    host = raw[length[0] + 3 : offset] if length[0] else b""
    assert (raw[: length[0]], host, raw[offset:]) == expected
    assert _split_by_host_runtime(raw) == expected


class _View(ctypes.Structure):
    """`std::string_view` of libstdc++."""

    _fields_ = (("length", ctypes.c_size_t), ("start", ctypes.c_void_p))


def _split_by_host_runtime(raw):
    buffer = ctypes.create_string_buffer(raw, len(raw) + 1)
    parts = (_View(), _View(), _View())
    whole = _View(len(raw), ctypes.addressof(buffer))
    _parse_of_host_runtime()(whole, *map(ctypes.byref, parts))
    return tuple(
        ctypes.string_at(part.start, part.length) if part.length else b"" for part in parts
    )


@cache
def _parse_of_host_runtime():
    library = ctypes.CDLL(str(runtime_path()))
    name = "_ZN3tsl2io8ParseURIESt17basic_string_viewIcSt11char_traitsIcEEPS4_S5_S5_"
    parse = library[name]
    parse.argtypes = [_View, *[ctypes.POINTER(_View)] * 3]
    parse.restype = None
    return parse


def _check_refused(text, *functions):
    for function in functions:
        try:
            function(text)
        except InvalidArgumentError:
            continue
        path = _split(text)[2]  # a plugin's own name for it may leave out what has no bytes
        assert "\0" not in path
        assert _has_bytes(path)


def _has_bytes(text):
    try:
        text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return False
    return True


def _text(dice, most):
    text = "".join(dice.choices(_PIECES, k=dice.randint(0, most)))
    if dice.random() < 0.6:
        text = dice.choice(_SCHEMES) + "://" + text
    if dice.random() < 0.3:
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice((*_SEPARATORS, chr(dice.randrange(1, 0xD800)))) + text[at:]
    if dice.random() < 0.02:
        text *= dice.randrange(2, 200)
    return text
