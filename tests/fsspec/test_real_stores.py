"""pandas, pyarrow and other processes on cloud stores, by tensorflow-io's plugins, unmodified."""

from __future__ import annotations

import pytest

pytestmark = [pytest.mark.emulator, pytest.mark.wild]

PREPARE = """
    import sys
    import fsspec
    import modular_tf as mtf

    plugin, base = sys.argv[1:]
    service = mtf.PluginService(plugin_paths=[plugin], bundled=False)
    service.load()
    scheme = base.partition("://")[0]
    assert scheme in mtf.fsspec.register(service, clobber=True, schemes=[scheme]).taken
    fs, path = fsspec.url_to_fs(base)
    assert isinstance(fs, mtf.fsspec.ModularFileSystem)
"""


@pytest.fixture(params=["s3", "gs"])
def store(request, wild_plugins):
    """The plugin, an empty place in its store, and what the plugin's process must know."""
    if request.param == "s3":
        store, plugin = request.getfixturevalue("s3_store"), wild_plugins.io_library
    else:
        store, plugin = request.getfixturevalue("gcs_store"), wild_plugins.gcs_library
    return plugin, store.uri(request.node.name.partition("[")[0]), store.environment


def test_pandas_reads_and_writes_csv(run_python, store):
    plugin, base, environment = store
    run_python(
        PREPARE
        + """
    import pandas as pd

    frame = pd.DataFrame({"n": range(50_000), "text": [f"row {i}" for i in range(50_000)]})
    frame.to_csv(f"{base}/x.csv", index=False)
    pd.testing.assert_frame_equal(pd.read_csv(f"{base}/x.csv"), frame)
    try:
        pd.read_csv(f"{base}/missing.csv")
    except FileNotFoundError as error:
        assert "missing.csv" in str(error)
    else:
        raise AssertionError("a missing file was read")
    """,
        plugin,
        base,
        env=environment,
    )


def test_pyarrow_reads_and_writes_datasets(run_python, store):
    plugin, base, environment = store
    run_python(
        PREPARE
        + """
    import pyarrow as pa, pyarrow.dataset, pyarrow.parquet

    table = pa.table({"n": list(range(1000)), "part": [i % 3 for i in range(1000)]})
    pa.parquet.write_to_dataset(table, path, partition_cols=["part"], filesystem=fs)
    found = pa.dataset.dataset(path, filesystem=fs, partitioning="hive")
    assert found.count_rows() == 1000
    assert found.to_table(filter=pa.dataset.field("part") == 1).num_rows == 333
    """,
        plugin,
        base,
        env=environment,
    )


def test_the_tree_can_be_worked_with(run_python, store):
    plugin, base, environment = store
    run_python(
        PREPARE
        + """
    content = bytes(range(256)) * 4096
    for name in ("a.bin", "sub/b.bin", "sub/deep/c.bin"):
        fs.pipe_file(f"{path}/{name}", content)
    fs.invalidate_cache()
    assert fs.find(path) == [f"{path}/{n}" for n in ("a.bin", "sub/b.bin", "sub/deep/c.bin")]
    assert fs.glob(f"{path}/*/*.bin") == [f"{path}/sub/b.bin"]
    assert fs.cat_file(f"{path}/sub/b.bin", 1000, 5000) == content[1000:5000]
    assert fs.info(f"{path}/a.bin")["size"] == len(content)
    assert fs.isdir(f"{path}/sub") and not fs.exists(f"{path}/none")
    fs.cp_file(f"{path}/a.bin", f"{path}/copy.bin")
    fs.mv(f"{path}/copy.bin", f"{path}/moved.bin")
    assert fs.cat_file(f"{path}/moved.bin") == content
    assert not fs.exists(f"{path}/copy.bin")
    fs.rm(f"{path}/sub", recursive=True)
    fs.invalidate_cache()
    assert fs.find(path) == [f"{path}/a.bin", f"{path}/moved.bin"]
    """,
        plugin,
        base,
        env=environment,
        timeout=240,
    )


def test_other_processes_load_the_plugin_for_themselves(run_python, store, tmp_path):
    plugin, base, environment = store
    program = tmp_path / "program.py"
    program.write_text(
        """
import multiprocessing
import sys

import modular_tf as mtf


def read(fs, path):
    return fs.cat_file(path)


if __name__ == "__main__":
    plugin, base = sys.argv[1:]
    fs = mtf.fsspec.ModularFileSystem(base.partition("://")[0], plugin=plugin)
    path = fs._strip_protocol(f"{base}/shared")
    fs.pipe_file(path, b"seen by all")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        answers = [pool.apply_async(read, (fs, path)) for _ in range(4)]
        assert {answer.get(60) for answer in answers} == {b"seen by all"}
        pool.close()
        pool.join()
"""
    )
    run_python(program, plugin, base, env=environment)


def test_the_command_line_copies_to_a_store_and_back(store, tmp_path, mtf_in):
    plugin, base, environment = store
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    (source / "a").write_bytes(bytes(range(256)) * 20_000)
    (source / "sub" / "b").write_bytes(b"b")
    command = mtf_in(environment, "--plugin", plugin)

    command("fs", "mkdir", "-p", base)
    command("fs", "cp", "-r", source, f"{base}/tree")
    command("fs", "cp", "-r", f"{base}/tree", tmp_path / "back")

    assert (tmp_path / "back" / "a").read_bytes() == (source / "a").read_bytes()
    assert (tmp_path / "back" / "sub" / "b").read_bytes() == b"b"
    assert command("fs", "ls", f"{base}/tree").splitlines() == ["a", "sub"]
    assert command("fs", "cat", f"{base}/tree/sub/b") == "b"
    command("fs", "rm", "-r", f"{base}/tree")
    assert command("fs", "stat", f"{base}/tree", status=1) == ""
