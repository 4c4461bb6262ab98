"""Who asks the store: the plugin, where a library is told so, and else its own client."""

from __future__ import annotations

import json
import sys
from typing import Any, NamedTuple

import pytest

from tests.fixtures.clients import with_places

# Which begins with Python 3.11; duckdb 1 makes `dir:/` of `dir://` in the URI of a database.
HAS_DUCKDB_2 = sys.version_info >= (3, 11)
pytestmark = [pytest.mark.emulator, pytest.mark.wild]
PLUGIN, ANOTHER, NOBODY = "the plugin", "another client", "nobody"

PREPARE = """
import json, os, sys, urllib.request
import fsspec
import modular_tf as mtf

service = mtf.PluginService()
service.load()
mtf.fsspec.register(service, clobber=True, schemes=["s3", "ram"], warn=False)
fs = fsspec.filesystem("s3")
bucket, store = sys.argv[1:]
taken = {}

def requests(method):
    asked = urllib.request.Request(f"{store}/-/requests", method=method)
    with urllib.request.urlopen(asked) as answer:
        return json.load(answer)

def take(name, step):
    requests("DELETE")
    value, error = None, None
    try:
        value = step()
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    taken[name] = (requests("GET")["agents"], value, error)

def tell():
    print("\\n" + json.dumps(taken))

take("plugin", lambda: fs.exists(f"{bucket}/nothing"))
"""


class Steps(NamedTuple):
    """What became of the steps of a child, by their names.

    Attributes:
        by: Who asked the store.
        values: What they returned.
        errors: What they raised.
    """

    by: dict[str, str]
    values: dict[str, Any]
    errors: dict[str, str]


def _read(output):
    taken = json.loads(output.splitlines()[-1])
    ours = taken.pop("plugin")[0]
    assert ours, "the plugin has asked the store nothing"
    by = {
        name: NOBODY if not agents else PLUGIN if agents == ours else ANOTHER
        for name, (agents, _, _) in taken.items()
    }
    values = {name: value for name, (_, value, error) in taken.items() if error is None}
    errors = {name: error for name, (_, _, error) in taken.items() if error is not None}
    return Steps(by, values, errors)


@pytest.fixture
def take_steps(run_python, clients, wild_plugins, distant_s3, tmp_path):
    """Run the steps that a program takes with a library, in a child; return what became of them."""
    store = distant_s3
    bucket = store.base_uri.removeprefix("s3://")
    theirs = {"AWS_ENDPOINT_URL": store.endpoint, "AWS_ALLOW_HTTP": "true"}
    environment = {**store.environment, **theirs, **with_places(wild_plugins.site_dir, clients)}

    def run(program):
        script = tmp_path / "steps.py"
        script.write_text(f"{PREPARE}\n{program}\ntell()\n")
        child = run_python(script, bucket, store.endpoint, env=environment, timeout=240)
        return _read(child.stdout)

    return run


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
