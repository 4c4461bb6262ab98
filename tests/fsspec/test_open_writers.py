"""Files that are open for writing when their service, or the process, ends."""

from __future__ import annotations

import pytest

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService

CONTENT = b"written and not closed\n" * 5000


@pytest.fixture
def fs():
    """The `file` filesystem of a service of its own."""
    with PluginService() as service:
        service.load()
        yield ModularFileSystem("file", service=service)


@pytest.mark.parametrize("mode", ["wb", "ab", "xb"])
def test_a_closing_service_writes_out_what_is_open(mode, fs, tmp_path):
    writer = fs.open(tmp_path / "f", mode)
    writer.write(CONTENT)
    fs.service.close()

    assert (tmp_path / "f").read_bytes() == CONTENT
    assert writer.closed
    writer.close()


def test_text_on_top_is_written_out_first(fs, tmp_path):
    writer = fs.open(tmp_path / "f", "w")
    writer.write("Grüße")
    fs.service.close()

    assert (tmp_path / "f").read_text("utf-8") == "Grüße"
    assert writer.closed


def test_a_failure_to_write_out_is_raised_by_the_closing_service(fs, tmp_path):
    kept = fs.open(tmp_path / "kept", "wb")
    lost = fs.open("/dev/full", "wb")
    for writer in (kept, lost):
        writer.write(CONTENT)
    with pytest.raises(errors.ResourceExhaustedError, match="/dev/full"):
        fs.service.close()

    assert lost.closed
    assert (tmp_path / "kept").read_bytes() == CONTENT
    fs.service.close()


def test_a_dropped_writer_keeps_its_data(fs, tmp_path):
    fs.open(tmp_path / "f", "wb").write(CONTENT)

    assert (tmp_path / "f").read_bytes() == CONTENT


AT_THE_END_OF_THE_PROCESS = {
    "bytes": 'writer = fs.open(path, "wb"); writer.write(content)',
    "text": 'writer = fs.open(path, "w"); writer.write(content.decode())',
    "by fsspec.open": """
        import fsspec
        mtf.fsspec.register(service, clobber=True, schemes=["file"])
        writer = fsspec.open(f"file://{path}", "w").open()
        writer.write(content.decode())
    """,
}


@pytest.mark.parametrize("code", AT_THE_END_OF_THE_PROCESS.values(), ids=AT_THE_END_OF_THE_PROCESS)
def test_the_end_of_the_process_writes_out_what_is_open(code, run_python, tmp_path):
    run_python(
        f"""
        import sys
        import modular_tf as mtf
        path, content = sys.argv[1], b"written and not closed\\n" * 5000
        service = mtf.PluginService()
        service.load()
        fs = mtf.fsspec.ModularFileSystem("file", service=service)
        {code}
        """,
        tmp_path / "f",
    )

    assert (tmp_path / "f").read_bytes() == CONTENT


def test_a_failure_to_write_out_at_the_end_of_the_process_is_told(run_python):
    child = run_python(
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
def test_a_cloud_store_gets_what_is_open_at_the_end(run_python, wild_plugins, s3_store):
    arguments = wild_plugins.io_library, s3_store.uri("open-writers") + "/f"
    for code in (
        """
    writer = fsspec.open(uri, "w").open()
    writer.write(content)
    """,
        """
    assert fsspec.open(uri, "r").open().read() == content
    """,
    ):
        run_python(IN_A_CLOUD + code, *arguments, env=s3_store.environment)


def test_a_fork_leaves_what_is_open_to_the_parent(run_python, tmp_path):
    run_python(
        """
        import os, sys
        from modular_tf.fsspec import ModularFileSystem
        from modular_tf.service.service import PluginService

        with PluginService() as service:
            service.load()
            writer = ModularFileSystem("file", service=service).open(sys.argv[1], "wb")
            writer.write(b"content" * 5000)
            if (child := os.fork()) == 0:
                service.close()
                os._exit(0)
            os.waitpid(child, 0)
            writer.close()
        """,
        tmp_path / "f",
    )

    assert (tmp_path / "f").read_bytes() == b"content" * 5000
