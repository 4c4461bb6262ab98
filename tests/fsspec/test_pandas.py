"""pandas and pyarrow read and write through plugins."""

from __future__ import annotations

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.fs
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


def test_pandas_writes_reads_and_appends_and_says_what_is_missing(base, frame):
    frame.to_csv(f"{base}/x.csv.gz", index=False)
    frame.to_parquet(f"{base}/x.parquet")
    frame[:10].to_csv(f"{base}/log.csv", index=False)
    frame[10:20].to_csv(f"{base}/log.csv", index=False, mode="a", header=False)

    pd.testing.assert_frame_equal(pd.read_csv(f"{base}/x.csv.gz"), frame)
    pd.testing.assert_frame_equal(pd.read_parquet(f"{base}/x.parquet"), frame)
    pd.testing.assert_frame_equal(pd.read_csv(f"{base}/log.csv"), frame[:20])
    with pytest.raises(FileNotFoundError):
        pd.read_csv(f"{base}/missing.csv")
    with pytest.raises(TypeError, match="'key': the plugin has no such setting"):
        pd.read_csv(f"{base}/log.csv", storage_options={"key": "k"})


def test_pyarrow_writes_and_reads_a_partitioned_dataset(ram, ram_path, frame):
    table = pa.Table.from_pandas(frame.assign(part=frame["number"] % 3))
    pa.dataset.write_dataset(
        table, ram_path, format="parquet", partitioning=["part"], filesystem=ram
    )
    found = pa.dataset.dataset(ram_path, filesystem=ram, partitioning=["part"])

    assert found.count_rows() == 1000
    assert found.to_table(filter=pa.dataset.field("part") == 1).num_rows == 333


def test_pyarrow_sees_and_changes_the_tree(ram, ram_path):
    arrow = pa.fs.PyFileSystem(pa.fs.FSSpecHandler(ram))
    arrow.create_dir(f"{ram_path}/a/b")
    with arrow.open_output_stream(f"{ram_path}/a/b/f") as stream:
        stream.write(bytes(range(256)))
    arrow.copy_file(f"{ram_path}/a/b/f", f"{ram_path}/a/copy")
    arrow.move(f"{ram_path}/a/b/f", f"{ram_path}/a/moved")
    arrow.delete_dir(f"{ram_path}/a/b")
    file, directory, missing = arrow.get_file_info(
        [f"{ram_path}/a/{name}" for name in ("moved", "", "b")]
    )

    assert (file.type, file.size) == (pa.fs.FileType.File, 256)
    assert file.mtime is not None
    assert directory.type == pa.fs.FileType.Directory
    assert missing.type == pa.fs.FileType.NotFound
    with arrow.open_input_file(f"{ram_path}/a/copy") as opened:
        assert opened.read_at(4, 250) == bytes(range(250, 254))
    selector = pa.fs.FileSelector(f"{ram_path}/a", recursive=True)
    arrow.delete_dir_contents(f"{ram_path}/a")
    assert arrow.get_file_info(selector) == []
