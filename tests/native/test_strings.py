"""What can be a C string, and what is refused with a word about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from modular_tf.errors import InvalidArgumentError
from modular_tf.native.strings import decode, encode


@pytest.mark.parametrize("raw", [b"", b"plain", "né".encode(), b"\xff\xfe/x", b"\xed\xa0\x80"])
def test_all_bytes_come_back(raw: bytes) -> None:
    assert encode(decode(raw)) == raw


@pytest.mark.parametrize("text", ["\0", "a\0b", "\ud800", "x\udc00"])
def test_text_without_a_c_string_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgumentError) as caught:
        encode(text)
    assert caught.value.path == text


@pytest.mark.parametrize("given", [None, 5, b"bytes", Path("p"), ["p"], object()])
def test_other_types_are_named(given: object) -> None:
    with pytest.raises(TypeError, match="expected a str, found"):
        encode(given)
