"""pyarrow and other processes on cloud stores, by tensorflow-io's plugins, unmodified."""

from __future__ import annotations

import pytest

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
PYARROW = """
import pyarrow as pa, pyarrow.dataset, pyarrow.parquet

table = pa.table({"n": list(range(1000)), "part": [i % 3 for i in range(1000)]})
pa.parquet.write_to_dataset(table, path, partition_cols=["part"], filesystem=fs)
found = pa.dataset.dataset(path, filesystem=fs, partitioning="hive")
assert found.count_rows() == 1000
assert found.to_table(filter=pa.dataset.field("part") == 1).num_rows == 333
"""
TREE = """
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
"""
OTHER_PROCESSES = """
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
COMMANDS = """
import pathlib, sys
from modular_tf.cli.main import run

plugin, base = sys.argv[1:]
source = pathlib.Path("source")
(source / "sub").mkdir(parents=True)
(source / "a").write_bytes(bytes(range(256)) * 20_000)
(source / "sub" / "b").write_bytes(b"b")
for words, status in (
    (f"mkdir -p {base}", 0),
    (f"cp -r source {base}/tree", 0),
    (f"cp -r {base}/tree back", 0),
    (f"ls {base}/tree", 0),
    (f"cat {base}/tree/sub/b", 0),
    (f"rm -r {base}/tree", 0),
    (f"stat {base}/tree", 1),
):
    assert int(run(["--plugin", plugin, "fs", *words.split()])) == status, words
back = pathlib.Path("back")
assert (back / "a").read_bytes() == (source / "a").read_bytes()
assert (back / "sub" / "b").read_bytes() == b"b"
"""
WORK = {"pyarrow": PREPARE + PYARROW, "a tree": PREPARE + TREE}
WORK["commands"] = COMMANDS

STORES = [
    pytest.param("s3", marks=pytest.mark.xdist_group("fsspec at moto")),
    pytest.param("gs", marks=pytest.mark.xdist_group("fsspec at gs")),
]
pytestmark = [pytest.mark.emulator, pytest.mark.wild]


@pytest.fixture(params=STORES)
def store(request, wild_plugins):
    """The plugin, an empty place in its store, and what the plugin's process must know."""
    is_s3 = request.param == "s3"
    store = request.getfixturevalue("s3_store" if is_s3 else "gcs_store")
    plugin = wild_plugins.io_library if is_s3 else wild_plugins.gcs_library
    place = request.node.callspec.params.get("work", "processes").replace(" ", "-")
    return plugin, store.uri(place), store.environment


@pytest.mark.parametrize("work", WORK)
def test_a_store_serves(work, run_forked, store):
    *arguments, environment = store
    done = run_forked(WORK[work], *arguments, env=environment, timeout=240)

    assert work != "commands" or done.stdout.split() == ["a", "sub", "b"]


def test_other_processes_load_the_plugin_for_themselves(run_python, store, tmp_path):
    *arguments, environment = store
    program = tmp_path / "program.py"
    program.write_text(OTHER_PROCESSES)
    run_python(program, *arguments, env=environment)
