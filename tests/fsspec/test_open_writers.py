"""Files that are open for writing when their service, or the process, ends."""

from __future__ import annotations

import os

import fsspec
import pytest

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem, register
from modular_tf.service.service import PluginService
from tests.fixtures.forked_children import with_body

CONTENT = b"written and not closed\n" * 5000
open_at_the_end = []


def made():
    """Return the `file` filesystem of a service of its own."""
    service = PluginService()
    service.load()
    return ModularFileSystem("file", service=service)


def test_a_closing_service_writes_out_what_is_open_and_raises_what_fails(tmp_path):
    fs = made()
    files = {mode: fs.open(tmp_path / mode, mode) for mode in ("wb", "ab", "xb", "w")}
    lost = fs.open("/dev/full", "wb")
    for mode, file in {**files, "lostb": lost}.items():
        file.write(CONTENT if "b" in mode else CONTENT.decode())
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full"):
        fs.service.close()

    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == dict.fromkeys(
        files, CONTENT
    )
    assert all(file.closed for file in (lost, *files.values()))
    files["wb"].close()


def left_open(test):
    """Run a test in a fork; see what it has written, and what it tells of a full device."""

    def run(run_body, tmp_path):
        output = run_body().stderr
        contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        assert contents == dict.fromkeys(("bytes", "text", "text by fsspec", "dropped"), CONTENT)
        assert "ResourceExhaustedError" in output
        assert "/dev/full" in output

    return with_body(test, run, "tmp_path")


@left_open
def test_the_end_of_the_process_writes_out_what_is_open_and_tells_what_fails():
    fs = made()
    register(fs.service, clobber=True, schemes=["file"])
    by_fsspec = fsspec.open(f"file://{os.path.abspath('text by fsspec')}", "w").open()  # noqa: PTH100
    texts = [fs.open("text", "w"), by_fsspec]
    files = [fs.open("bytes", "wb"), fs.open("/dev/full", "wb"), fs.open("dropped", "wb")]
    for file in texts:
        file.write(CONTENT.decode())
    for file in files:
        file.write(CONTENT)
    open_at_the_end.extend([*texts, *files[:2]])
