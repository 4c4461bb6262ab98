"""Who asks the store: the plugin, where a library is told so, and else its own client."""

import sys

import pytest

from tests.clients.conftest import ANOTHER, NOBODY, PLUGIN

# Which begins with Python 3.11; duckdb 1 makes `dir:/` of `dir://` in the URI of a database.
HAS_DUCKDB_2 = sys.version_info >= (3, 11)
pytestmark = [pytest.mark.emulator, pytest.mark.wild]


def test_pandas_and_pyarrow(take_steps):
    steps = take_steps("""
import pandas as pd
import pyarrow.dataset, pyarrow.parquet

frame = pd.DataFrame({"n": range(1000), "part": [i % 3 for i in range(1000)]})
base = f"s3://{bucket}/pandas"
uri = f"{base}/x.parquet"

def csv():
    frame.to_csv(f"{base}/x.csv", index=False)
    return len(pd.read_csv(f"{base}/x.csv"))

def parquet(**options):
    frame.to_parquet(uri, **options)
    return len(pd.read_parquet(uri, **options))

def parts():
    path = f"{bucket}/pandas/parts"
    frame.to_parquet(path, filesystem=fs, partition_cols=["part"])
    return len(pd.read_parquet(path, filesystem=fs))

take("csv", csv)
take("parquet", parquet)
take("with options", lambda: parquet(storage_options={}))
take("with filesystem", lambda: parquet(filesystem=fs))
take("parts", parts)
take("pyarrow", lambda: pyarrow.parquet.read_table(uri).num_rows)
take("pyarrow with filesystem", lambda: pyarrow.parquet.read_table(uri, filesystem=fs).num_rows)
""")

    assert steps.errors == {}
    assert set(steps.values.values()) == {1000}
    assert steps.by == {
        "csv": PLUGIN,
        "parquet": ANOTHER,
        "with options": PLUGIN,
        "with filesystem": PLUGIN,
        "parts": PLUGIN,
        "pyarrow": ANOTHER,
        "pyarrow with filesystem": PLUGIN,
    }


def test_polars(take_steps):
    steps = take_steps("""
import polars as pl
import pyarrow.dataset

frame = pl.DataFrame({"n": range(1000), "part": [i % 3 for i in range(1000)]})
path = f"{bucket}/polars/x.parquet"

def write():
    with fs.open(path, "wb") as file:
        frame.write_parquet(file)

def read():
    with fs.open(path) as file:
        return pl.read_parquet(file, columns=["n"]).height

def scan():
    with fs.open(path) as file:
        return pl.scan_parquet(file).select("n").collect().height

def scan_dataset():
    data = pyarrow.dataset.dataset(path, filesystem=fs)
    return pl.scan_pyarrow_dataset(data).select("n").collect().height

take("write", write)
take("read", read)
take("scan", scan)
take("scan of a dataset", scan_dataset)
take("read by URI", lambda: pl.read_parquet(f"s3://{path}").height)
""")

    assert steps.errors == {}
    assert set(steps.values.values()) == {None, 1000}
    assert steps.by == {
        "write": PLUGIN,
        "read": PLUGIN,
        "scan": PLUGIN,
        "scan of a dataset": PLUGIN,
        "read by URI": ANOTHER,
    }


def test_duckdb(take_steps):
    steps = take_steps("""
import duckdb
from fsspec.implementations.dirfs import DirFileSystem

here = duckdb.connect()
here.execute("SET autoinstall_known_extensions = false")
here.register_filesystem(fs)
base = f"s3://{bucket}/duckdb"
few = "(SELECT range AS n, range % 2 AS part FROM range(1000))"

def count(source):
    return here.execute(f"SELECT count(*) FROM {source}").fetchone()[0]

def attach(uri):
    here.execute(f"ATTACH '{uri}' AS stored (READ_ONLY)")
    return count("stored.numbers")

def write_partitions():
    here.execute(f"COPY {few} TO '{base}/parts' (FORMAT parquet, PARTITION_BY (part))")
    return count(f"read_parquet('{base}/parts/*/*.parquet')")

with duckdb.connect("local.duckdb") as made:
    made.execute(f"CREATE TABLE numbers AS FROM {few}")
fs.put_file("local.duckdb", f"{bucket}/duckdb/numbers.duckdb")
take("copy", lambda: here.execute(f"COPY {few} TO '{base}/x.parquet' (FORMAT parquet)") and None)
take("read", lambda: count(f"read_parquet('{base}/x.parquet')"))
take("partitions", write_partitions)
take("attach", lambda: attach(f"{base}/numbers.duckdb"))
here.register_filesystem(DirFileSystem(f"{bucket}/duckdb", fs))
take("attach by folder", lambda: attach("dir://numbers.duckdb"))
""")

    by_folder = {} if HAS_DUCKDB_2 else {"attach by folder": "IO Error: Cannot open database"}
    expected = {"attach": "httpfs", **by_folder}
    assert steps.errors.keys() == expected.keys(), steps.errors
    assert all(text in steps.errors[name] for name, text in expected.items()), steps.errors
    assert set(steps.values.values()) == {None, 1000}
    assert {**steps.by, "attach": None} == {
        "copy": PLUGIN,
        "read": PLUGIN,
        "partitions": PLUGIN,
        "attach": None,  # it looks by the plugin, and then wants a client of its own
        "attach by folder": PLUGIN if HAS_DUCKDB_2 else NOBODY,
    }


@pytest.mark.skipif(sys.version_info < (3, 11), reason="zarr 3 begins with Python 3.11")
def test_zarr(take_steps):
    steps = take_steps("""
import warnings
import numpy as np
import zarr

warnings.simplefilter("ignore")

def write_and_read(base, **options):
    store = zarr.storage.FsspecStore.from_url(f"{base}/z.zarr", **options)
    assert isinstance(store.fs, mtf.fsspec.ModularFileSystem)  # asynchronous, without a wrapper
    made = zarr.create_array(store, shape=(12,), chunks=(3,), dtype="f8", overwrite=True)
    made[:] = np.arange(12.0)
    return float(zarr.open_array(store, mode="r")[:].sum())

for scheme, base in {"s3": f"s3://{bucket}/zarr", "ram": "ram://zarr"}.items():
    take(scheme, lambda: write_and_read(base))
    take(f"{scheme} making", lambda: write_and_read(base, storage_options={"auto_mkdir": True}))
""")

    assert set(steps.values.values()) == {66.0}
    # Where directories exist, somebody has to make them; an object store has none.
    assert steps.errors.keys() == {"ram"}
    assert "NotFound" in steps.errors["ram"]
    assert steps.by == {"s3": PLUGIN, "s3 making": PLUGIN, "ram": NOBODY, "ram making": NOBODY}
