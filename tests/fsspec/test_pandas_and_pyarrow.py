"""pandas and pyarrow read and write through plugins."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
import pyarrow.parquet
import pytest

from modular_tf.fsspec import register

pytestmark = pytest.mark.usefixtures("untouched_registry")


@pytest.fixture
def base(service, ram_path):
    """The URI of a directory that fsspec opens by the RAM plugin."""
    register(service)
    return f"ram://{ram_path}"


@pytest.fixture
def frame():
    return pd.DataFrame({"number": range(1000), "text": [f"row {i}" for i in range(1000)]})


@pytest.mark.parametrize("name", ["plain.csv", "squeezed.csv.gz", "packed.csv.zip"])
def test_pandas_writes_and_reads_csv(base, frame, name):
    frame.to_csv(f"{base}/{name}", index=False)

    pd.testing.assert_frame_equal(pd.read_csv(f"{base}/{name}"), frame)


def test_pandas_appends_to_csv_and_says_what_is_missing_or_has_no_effect(base, frame):
    frame[:10].to_csv(f"{base}/log.csv", index=False)
    frame[10:20].to_csv(f"{base}/log.csv", index=False, mode="a", header=False)

    pd.testing.assert_frame_equal(pd.read_csv(f"{base}/log.csv"), frame[:20])
    with pytest.raises(FileNotFoundError):
        pd.read_csv(f"{base}/missing.csv")
    with pytest.raises(TypeError, match="'key': the plugin has no such setting"):
        pd.read_csv(f"{base}/log.csv", storage_options={"key": "k"})


def test_pandas_writes_and_reads_parquet(base, frame):
    frame.to_parquet(f"{base}/x.parquet")

    columns = pd.read_parquet(f"{base}/x.parquet", columns=["number"])
    pd.testing.assert_frame_equal(columns, frame[["number"]])


@pytest.fixture
def arrow(ram):
    """The RAM plugin as a filesystem of pyarrow."""
    return pa.fs.PyFileSystem(pa.fs.FSSpecHandler(ram))


def test_pyarrow_writes_and_reads_parquet_and_a_partitioned_dataset(arrow, ram, ram_path, frame):
    table = pa.Table.from_pandas(frame.assign(part=frame["number"] % 3))
    pa.parquet.write_table(table, f"{ram_path}/x.parquet", filesystem=arrow)
    pa.parquet.write_to_dataset(table, f"{ram_path}/set", partition_cols=["part"], filesystem=ram)

    assert pa.parquet.read_table(f"{ram_path}/x.parquet", filesystem=arrow).equals(table)
    parts = [path.rpartition("/")[2] for path in ram.ls(f"{ram_path}/set", detail=False)]
    assert parts == ["part=0", "part=1", "part=2"]
    found = pa.dataset.dataset(f"{ram_path}/set", filesystem=ram, partitioning="hive")
    assert found.count_rows() == 1000
    assert found.to_table(filter=pa.dataset.field("part") == 1).num_rows == 333


def test_pyarrow_sees_kinds_sizes_and_times_and_reads_at_random(arrow, ram, ram_path):
    ram.pipe_file(f"{ram_path}/f", bytes(range(256)))
    file, directory, missing = arrow.get_file_info([f"{ram_path}/f", ram_path, f"{ram_path}/no"])

    assert (file.type, file.size) == (pa.fs.FileType.File, 256)
    assert file.mtime is not None
    assert directory.type == pa.fs.FileType.Directory
    assert missing.type == pa.fs.FileType.NotFound
    with arrow.open_input_file(f"{ram_path}/f") as opened:
        assert opened.size() == 256
        assert opened.read_at(4, 250) == bytes(range(250, 254))
        opened.seek(10)
        assert opened.read(2) == b"\x0a\x0b"


def test_pyarrow_changes_the_tree(arrow, ram_path):
    arrow.create_dir(f"{ram_path}/a/b")
    with arrow.open_output_stream(f"{ram_path}/a/b/f") as stream:
        stream.write(b"x")
    arrow.copy_file(f"{ram_path}/a/b/f", f"{ram_path}/a/copy")
    arrow.move(f"{ram_path}/a/b/f", f"{ram_path}/a/moved")
    arrow.delete_dir(f"{ram_path}/a/b")

    selector = pa.fs.FileSelector(f"{ram_path}/a", recursive=True)
    assert sorted(info.base_name for info in arrow.get_file_info(selector)) == ["copy", "moved"]
    arrow.delete_dir_contents(f"{ram_path}/a")
    assert arrow.get_file_info(selector) == []
