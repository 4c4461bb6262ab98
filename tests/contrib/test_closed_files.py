"""Filesystem plugins refuse the use of a closed file, which this package never asks for."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from tests.contrib.built_plugin import installed_plugin
from tests.contrib.raw_plugins import raw_filesystem


@pytest.mark.parametrize(
    ("plugin", "scheme"), [("posix_filesystem", "file"), ("ram_filesystem", "ram")]
)
def test_a_closed_file_is_not_used_again(plugin, scheme, tmp_path):
    with raw_filesystem(installed_plugin(plugin), scheme, tmp_path) as fs:
        uri = fs.path("closed")
        with fs.new_writable_file(uri).opened() as writer:
            writer.append(b"before").must_be_ok()
            writer.close().must_be_ok()
            writer.append(b"late").must_be(Code.FAILED_PRECONDITION)
            for late in (writer.tell, writer.flush, writer.sync, writer.close):
                late().must_be(Code.FAILED_PRECONDITION)
        assert fs.content(uri) == b"before"
