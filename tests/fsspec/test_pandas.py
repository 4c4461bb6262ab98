"""pandas reads and writes through plugins."""

from __future__ import annotations

import pandas as pd
import pytest

from modular_tf.fsspec import register


@pytest.mark.usefixtures("untouched_registry")
def test_pandas_writes_reads_and_appends_and_says_what_is_missing(service, ram_path):
    register(service)
    base = f"ram://{ram_path}"
    frame = pd.DataFrame({"number": range(1000), "text": [f"row {i}" for i in range(1000)]})
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
