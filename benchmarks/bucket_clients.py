"""What people read buckets with, each in a process of its own: the clients of `buckets.py`.

Usage: PYTHON benchmarks/bucket_clients.py CLIENT

CLIENT is `modular_tf`, `s3fs`, `boto3`, `pyarrow` or `obstore`, and PYTHON has it. The environment
says where the store is: ENDPOINT, BUCKET, PLUGIN. It prints the names of its cases as JSON. Then it
does what it is asked for, a name in a line, checks what came, and prints the seconds that it took,
or what went wrong, as JSON.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import bucket_content as content

Call = Callable[[], Any]
ENDPOINT, BUCKET = os.environ.get("ENDPOINT", ""), os.environ.get("BUCKET", "")
KEY, SECRET, REGION = "nobody", "secret", "us-east-1"
THREADS = 16
DOWNLOADED = Path(tempfile.gettempdir(), f"bucket-{os.getpid()}")


def path(key: str) -> str:
    """Return a key with its bucket, as fsspec's filesystems name it."""
    return f"{BUCKET}/{key}"


def in_threads(call: Callable[[str], bytes], names: Iterable[str]) -> list[bytes]:
    """Return what a call returns for each name, 16 at once."""
    with ThreadPoolExecutor(THREADS) as pool:
        return list(pool.map(call, names))


def in_pieces(opened: Any) -> bytes:
    """Read a file by 8 KiB from its beginning to its end."""
    with opened as file:
        return b"".join(iter(lambda: file.read(8 << 10), b""))


def read_columns(filesystem: Any) -> Any:
    """Read 3 of the 20 columns with pyarrow."""
    import pyarrow.parquet as pq

    return pq.read_table(
        path(content.TABLE), columns=list(content.READ_COLUMNS), filesystem=filesystem
    )


def fsspec_cases(fs: Any) -> dict[str, Call]:
    """Return the cases of a filesystem of fsspec."""
    big, small, many = path(content.BIG), path(content.MANY[0]), [path(key) for key in content.MANY]

    def ranges(wanted: content.Ranges) -> Call:
        starts, ends = [first for first, _ in wanted], [last for _, last in wanted]
        return lambda: fs.cat_ranges([big] * len(wanted), starts, ends)

    def read(name: str) -> bytes:
        with fs.open(name, "rb") as file:
            data: bytes = file.read()
            return data

    def cat() -> list[bytes]:
        found = fs.cat(many)
        return [found[name] for name in many]

    def afresh(call: Call) -> Call:
        def asked() -> Any:
            fs.invalidate_cache()  # s3fs keeps listings
            return call()

        return asked

    return {
        "whole": lambda: fs.cat_file(big),
        "whole, open": lambda: read(big),
        "small": lambda: fs.cat_file(small),
        "many": cat,
        "many, threads": lambda: in_threads(read, many),
        "random ranges": ranges(content.RANDOM_RANGES),
        "near ranges": ranges(content.NEAR_RANGES),
        "sizes": afresh(
            lambda: {
                entry["name"].rpartition("/")[2]: entry["size"]
                for entry in fs.ls(path(content.WIDE_FOLDER), detail=True)
            }
        ),
        "names": afresh(
            lambda: {
                name.rpartition("/")[2] for name in fs.ls(path(content.WIDE_FOLDER), detail=False)
            }
        ),
        "columns": afresh(lambda: read_columns(fs)),
    }


def modular_tf_cases() -> dict[str, Call]:
    """Return the cases of the fsspec adaptor over the plugin, and of the faces beside it."""
    os.environ.update(content.plugin_environment(ENDPOINT))
    import modular_tf as mtf
    from modular_tf.fsspec import ModularFileSystem

    fs = ModularFileSystem("s3", plugin=os.environ["PLUGIN"])
    service = mtf.PluginService(plugin_paths=[os.environ["PLUGIN"]])
    service.load()
    functions, uri = mtf.gfile.using(service), f"s3://{path(content.BIG)}"

    def download() -> Path:
        functions.copy(uri, str(DOWNLOADED), overwrite=True)
        return DOWNLOADED

    return fsspec_cases(fs) | {
        "pieces": lambda: in_pieces(fs.open(path(content.BIG), "rb")),
        "pieces, Filesystem": lambda: in_pieces(service.filesystem("s3").open(uri, "rb")),
        "download": download,
    }


def s3fs_cases() -> dict[str, Call]:
    """Return the cases of s3fs."""
    import s3fs

    client = {"endpoint_url": ENDPOINT, "region_name": REGION}
    return fsspec_cases(s3fs.S3FileSystem(key=KEY, secret=SECRET, client_kwargs=client))


def boto3_cases() -> dict[str, Call]:
    """Return the cases of boto3, in threads where there are many objects."""
    import boto3
    from botocore.config import Config

    client = boto3.client(
        "s3", endpoint_url=ENDPOINT, region_name=REGION, aws_access_key_id=KEY,
        aws_secret_access_key=SECRET, config=Config(max_pool_connections=2 * THREADS),
    )  # fmt: skip

    def get(key: str, **options: str) -> bytes:
        data: bytes = client.get_object(Bucket=BUCKET, Key=key, **options)["Body"].read()
        return data

    def ranges(wanted: content.Ranges) -> list[bytes]:
        with ThreadPoolExecutor(THREADS) as pool:
            headers = [f"bytes={first}-{last - 1}" for first, last in wanted]
            return list(pool.map(lambda header: get(content.BIG, Range=header), headers))

    def sizes() -> dict[str, int]:
        pages = client.get_paginator("list_objects_v2").paginate(
            Bucket=BUCKET, Prefix=content.WIDE_FOLDER + "/"
        )
        found = [entry for page in pages for entry in page["Contents"]]
        return {entry["Key"].rpartition("/")[2]: entry["Size"] for entry in found}

    return {
        "whole": lambda: get(content.BIG),
        "small": lambda: get(content.MANY[0]),
        "many": lambda: in_threads(get, content.MANY),
        "random ranges": lambda: ranges(content.RANDOM_RANGES),
        "near ranges": lambda: ranges(content.NEAR_RANGES),
        "sizes": sizes,
    }


def pyarrow_cases() -> dict[str, Call]:
    """Return the cases of pyarrow's own filesystem."""
    from pyarrow import fs as arrow

    scheme, _, host = ENDPOINT.partition("://")
    fs = arrow.S3FileSystem(
        access_key=KEY, secret_key=SECRET, region=REGION, endpoint_override=host, scheme=scheme
    )

    def get(key: str) -> bytes:
        with fs.open_input_file(path(key)) as file:
            data: bytes = file.read()
            return data

    def sizes() -> dict[str, int]:
        found = fs.get_file_info(arrow.FileSelector(path(content.WIDE_FOLDER)))
        return {entry.base_name: entry.size for entry in found}

    return {
        "whole": lambda: get(content.BIG),
        "small": lambda: get(content.MANY[0]),
        "many": lambda: in_threads(get, content.MANY),
        "sizes": sizes,
        "columns": lambda: read_columns(fs),
    }


def obstore_store() -> Any:
    """Return the bucket as a store of obstore."""
    from obstore.store import S3Store

    return S3Store(
        BUCKET, access_key_id=KEY, secret_access_key=SECRET, region=REGION, endpoint=ENDPOINT,
        virtual_hosted_style_request=False, client_options={"allow_http": True},
    )  # fmt: skip


def obstore_cases() -> dict[str, Call]:
    """Return the cases of obstore."""
    import obstore

    store = obstore_store()

    def get(key: str) -> bytes:
        return bytes(obstore.get(store, key).bytes())

    def download() -> Path:
        with DOWNLOADED.open("wb") as file:
            for chunk in obstore.get(store, content.BIG):
                file.write(chunk)
        return DOWNLOADED

    def ranges(wanted: content.Ranges) -> list[bytes]:
        starts, ends = [first for first, _ in wanted], [last for _, last in wanted]
        return list(map(bytes, obstore.get_ranges(store, content.BIG, starts=starts, ends=ends)))

    def sizes() -> dict[str, int]:
        found = obstore.list(store, prefix=content.WIDE_FOLDER).collect()
        return {entry["path"].rpartition("/")[2]: entry["size"] for entry in found}

    return {
        "whole": lambda: get(content.BIG),
        "download": download,
        "small": lambda: get(content.MANY[0]),
        "many": lambda: in_threads(get, content.MANY),
        "random ranges": lambda: ranges(content.RANDOM_RANGES),
        "near ranges": lambda: ranges(content.NEAR_RANGES),
        "sizes": sizes,
    }


def main() -> None:
    """Answer until there is no more to read."""
    cases: dict[str, Call] = globals()[f"{sys.argv[1]}_cases"]()
    print(json.dumps(list(cases)), flush=True)
    for line in sys.stdin:
        name = line.strip()
        try:
            start = time.perf_counter()
            result = cases[name]()
            seconds = time.perf_counter() - start
            content.check(name, result)
            told: dict[str, object] = {"seconds": seconds}
        except Exception as error:  # noqa: BLE001  (told to the program that compares)
            told = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(told), flush=True)
    DOWNLOADED.unlink(missing_ok=True)


if __name__ == "__main__":
    main()
