"""Files that are open for writing when their service, or the process, ends."""

from __future__ import annotations

import os

import fsspec
import pytest

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem, register
from modular_tf.service.service import PluginService
from tests.fixtures.forked_children import in_a_fork

CONTENT = b"written and not closed\n" * 5000
open_at_the_end = []


def made():
    """Return the `file` filesystem of a service of its own."""
    service = PluginService()
    service.load()
    return ModularFileSystem("file", service=service)


@pytest.fixture
def fs():
    made_one = made()
    with made_one.service:
        yield made_one


@pytest.mark.parametrize("mode", ["wb", "ab", "xb", "w"])
def test_a_closing_service_writes_out_what_is_open(mode, fs, tmp_path):
    writer = fs.open(tmp_path / "f", mode)
    writer.write(CONTENT if "b" in mode else CONTENT.decode())
    fs.service.close()

    assert (tmp_path / "f").read_bytes() == CONTENT
    assert writer.closed
    writer.close()


def test_a_failure_to_write_out_is_raised_by_the_closing_service(fs, tmp_path):
    other, lost = fs.open(tmp_path / "kept", "wb"), fs.open("/dev/full", "wb")
    for writer in (other, lost):
        writer.write(CONTENT)
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full"):
        fs.service.close()

    assert lost.closed
    assert (tmp_path / "kept").read_bytes() == CONTENT
    fs.service.close()


def test_a_dropped_writer_keeps_its_data(fs, tmp_path):
    fs.open(tmp_path / "f", "wb").write(CONTENT)

    assert (tmp_path / "f").read_bytes() == CONTENT


@in_a_fork
def leave_open():
    fs = made()
    register(fs.service, clobber=True, schemes=["file"])
    by_fsspec = fsspec.open(f"file://{os.path.abspath('text by fsspec')}", "w").open()  # noqa: PTH100
    files = [fs.open("bytes", "wb"), fs.open("text", "w"), by_fsspec]
    for file in files:
        file.write(CONTENT if file is files[0] else CONTENT.decode())
    open_at_the_end.extend(files)


def test_the_end_of_the_process_writes_out_what_is_open(run_forked, tmp_path):
    leave_open(run_forked)

    contents = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert contents == dict.fromkeys(("bytes", "text", "text by fsspec"), CONTENT)


def test_a_failure_to_write_out_at_the_end_of_the_process_is_told(run_forked):
    child = run_forked(
        """
        import modular_tf as mtf
        service = mtf.PluginService()
        service.load()
        writer = mtf.fsspec.ModularFileSystem("file", service=service).open("/dev/full", "wb")
        writer.write(b"lost")
        """
    )

    assert "ResourceExhaustedError" in child.stderr
    assert "/dev/full" in child.stderr


IN_A_CLOUD = """
import sys
import fsspec
import modular_tf as mtf
service = mtf.PluginService(plugin_paths=[sys.argv[1]], bundled=False)
service.load()
mtf.fsspec.register(service, clobber=True, schemes=["s3"])
uri, content = sys.argv[2], "written and not closed\\n" * 5000
"""


@pytest.mark.emulator
@pytest.mark.wild
@pytest.mark.xdist_group("fsspec at moto")
def test_a_cloud_store_gets_what_is_open_at_the_end(run_forked, wild_plugins, s3_store):
    arguments = wild_plugins.io_library, s3_store.uri("open-writers") + "/f"
    for code in (
        'writer = fsspec.open(uri, "w").open(); writer.write(content)',
        'assert fsspec.open(uri, "r").open().read() == content',
    ):
        run_forked(IN_A_CLOUD + code, *arguments, env=s3_store.environment)


@in_a_fork
def test_a_fork_leaves_what_is_open_to_the_parent():
    fs = made()
    with fs.service:
        writer = fs.open("f", "wb")
        writer.write(CONTENT)
        if (child := os.fork()) == 0:
            fs.service.close()
            os._exit(0)
        os.waitpid(child, 0)
        writer.close()
        assert fs.cat_file("f") == CONTENT
