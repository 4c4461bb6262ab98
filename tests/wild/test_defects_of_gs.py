"""The known defects of the GCS filesystem of tensorflow-io, with and without workarounds."""

from __future__ import annotations

import signal

import pytest

pytestmark = [pytest.mark.wild, pytest.mark.emulator]


def test_gs_unset_environment_crashes(gcs_store, run_subject):
    code = "put('file', b'content'); expect(get('file'), b'content')"
    run_subject(gcs_store, code, folder="environment")
    raw = {"without": "defaults", "status": -signal.SIGSEGV}
    run_subject(gcs_store, code, folder="environment", **raw)


def test_gs_large_reads_overflow(gcs_store, run_subject, run_python):
    """8 MiB in one read, and as memory; not run without the workaround, which breaks the heap."""
    run_subject(
        gcs_store,
        """
        content = os.urandom(8 << 20)
        put("file", content)
        expect(get("file", 0, 16 << 20) == content, True)
        expect(get("file", 131_000, 200_000) == content[131_000:331_000], True)
        with fs.new_read_only_memory_region_from_file(uri("file")) as region:
            expect(region.view() == content, True)
        """,
        folder="large",
        env={"GCS_READ_CACHE_BLOCK_SIZE_MB": "16", "MALLOC_CHECK_": "3"},
        run_child=run_python,
    )


def test_a_changed_variable_is_told(gcs_store, run_subject):
    child = run_subject(
        gcs_store,
        """
        for warning in service.plugins()[0].warnings:
            print(warning.message)
        """,
        env={"GCS_READ_CACHE_BLOCK_SIZE_MB": "16", "GCS_APPEND_MODE": "compose"},
    )
    assert "GCS_READ_CACHE_BLOCK_SIZE_MB was set to '0', from '16'" in child.stdout
    assert "GCS_APPEND_MODE was unset, from 'compose'" in child.stdout


def test_gs_append_by_compose(gcs_store, run_subject):
    code = """
        def append(data):
            with fs.new_appendable_file(uri("file")) as file:
                file.append(data)
        put("file", b"before")
        if sys.argv[1] == "worked_around":
            append(b"after")
            expect(get("file"), b"beforeafter")
        else:
            expect_error(errors.FailedPreconditionError, append, b"after")
        """
    compose = {"GCS_APPEND_MODE": "compose"}
    run_subject(gcs_store, code, "worked_around", folder="compose", env=compose)
    without = "forbidden,new_appendable_file"
    run_subject(gcs_store, code, "raw", folder="compose", env=compose, without=without)


def test_gs_directories_end_in_slash(gcs_store, run_subject):
    run_subject(
        gcs_store,
        """
        put("directory/file")
        put("file")
        expect(fs.get_children(base), ["directory", "file"])
        expect(sorted(fs.listed_names(base)), ["directory/", "file"])
        """,
        folder="slash",
    )


def test_gs_directories_do_not_exist(gcs_store, run_subject):
    code = """
        worked_around = sys.argv[1] == "worked_around"
        put("directory/file")
        expect(fs.path_exists(uri("directory")), worked_around)
        if worked_around:
            for ask in (fs.get_children, fs.delete_dir, fs.new_random_access_file):
                expect_error(FileNotFoundError, ask, uri("missing"))
            fs.rename_file(uri("directory"), uri("moved"))
            expect((get("moved/file"), fs.path_exists(uri("directory"))), (b"data", False))
            expect(fs.get_children("gs://fixture"), fs.get_children("gs://fixture/"))
        else:
            expect(fs.get_children(uri("missing")), [])
            fs.delete_dir(uri("missing"))
            fs.new_random_access_file(uri("missing")).close()
        """
    run_subject(gcs_store, code, "worked_around", folder="directories")
    run_subject(gcs_store, code, "raw", folder="directories-raw", without="*")
