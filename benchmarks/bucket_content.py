"""What lies in the bucket of `buckets.py`, how it gets there, and what each case must find."""

from __future__ import annotations

import http.client
import io
import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

MIB = 1 << 20
SMALL = 64 << 10
Ranges = Sequence[tuple[int, int]]

BIG = "big.bin"
BIG_DATA = bytes(range(256)) * (64 * MIB // 256 - 1) + bytes(reversed(range(256)))
MANY_FOLDER, WIDE_FOLDER, TABLE = "many", "wide", "table.parquet"
MANY = [f"{MANY_FOLDER}/f{number:04}.bin" for number in range(200)]
COPIED = [f"copied/f{number:04}.bin" for number in range(200)]
WIDE = [f"{WIDE_FOLDER}/f{number:04}.txt" for number in range(1000)]
WIDE_DATA = b"x" * 100
LISTED_FOLDER = "listed"
LISTED = [f"{LISTED_FOLDER}/f{number:04}.txt" for number in range(2000)]
ROWS, COLUMNS, ROW_GROUPS = 200_000, 20, 4
READ_COLUMNS = ("column02", "column09", "column17")


def small_data(key: str) -> bytes:
    """Return the content of one of the many objects: no two are alike."""
    return key.encode().ljust(64, b".") * (SMALL // 64)


def _ranges(starts: Sequence[int]) -> Ranges:
    mixed = list(starts)
    random.Random(16).shuffle(mixed)
    return [(start, start + SMALL) for start in mixed]


_random = random.Random(64)
RANDOM_RANGES = _ranges([_random.randrange(64 * MIB - SMALL) for _ in range(100)])
# Between two neighbours lie at most 16 KiB.
NEAR_RANGES = _ranges([number * (SMALL + (16 << 10)) + number % 7 * 1000 for number in range(100)])


def plugin_environment(endpoint: str) -> dict[str, str]:
    """Return what the s3 plugin of tensorflow-io reads."""
    return {
        "S3_ENDPOINT": endpoint,
        "S3_VERIFY_SSL": "0",
        "AWS_ACCESS_KEY_ID": "nobody",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }


def table() -> bytes:
    """Return a parquet file of 20 columns of random numbers."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    numbers = np.random.default_rng(16)
    columns = {f"column{n:02}": numbers.random(ROWS) for n in range(COLUMNS)}
    file = io.BytesIO()
    pq.write_table(pa.table(columns), file, row_group_size=ROWS // ROW_GROUPS)
    return file.getvalue()


def fill(endpoint: str, bucket: str) -> None:
    """Put everything into a store that looks at no signature."""
    connection = http.client.HTTPConnection(urlsplit(endpoint).netloc, timeout=60)

    def put(key: str, data: bytes) -> None:
        connection.request("PUT", f"/{bucket}/{key}", data)
        response = connection.getresponse()
        response.read()
        if response.status != http.client.OK:
            raise RuntimeError(f"PUT {key}: {response.status}")

    put(BIG, BIG_DATA)
    put(TABLE, table())
    for key in MANY:
        put(key, small_data(key))
    for key in (*WIDE, *LISTED):
        put(key, WIDE_DATA)
    connection.close()


def check(case: str, result: Any) -> None:
    """Raise AssertionError unless a case found what lies in the bucket."""
    wide = {key.rpartition("/")[2] for key in WIDE}
    if isinstance(result, Path):
        result = result.read_bytes()
    if case.startswith(("whole", "pieces", "download")):
        found, expected = len(result), len(BIG_DATA)
        assert result == BIG_DATA
    elif case == "small":
        found, expected = result, small_data(MANY[0])
    elif case.startswith("many"):
        found, expected = [bytes(data) for data in result], [small_data(key) for key in MANY]
    elif case.endswith("ranges"):
        wanted = RANDOM_RANGES if case.startswith("random") else NEAR_RANGES
        found = [bytes(data) for data in result]
        expected = [BIG_DATA[first:last] for first, last in wanted]
    elif case == "sizes":
        found, expected = result, dict.fromkeys(wide, len(WIDE_DATA))
    elif case == "names":
        found, expected = result, wide
    else:
        found, expected = (result.num_rows, result.num_columns), (ROWS, len(READ_COLUMNS))
    assert found == expected, f"{case}: not what lies in the bucket"
