"""Files inside TensorFlow: by our plugins beside TensorFlow's own disk, and of a distant bucket.

The bucket is the emulator tests/emulators/distant_s3.py, which answers after a delay. Usage, in an
environment with the package, TensorFlow and the extra `bench`:
    python benchmarks/tensorflow_files.py [--plugin LIBRARY] [--delay SECONDS] [--repeat N]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf
from bucket_clients import KEY, REGION, SECRET
from bucket_content import plugin_environment
from buckets import BUCKET, Store, running_store, tests_plugin
from interleaved_cases import Case, measure, show

import modular_tf as mtf
import modular_tf.tensorflow as mtft

if TYPE_CHECKING:
    from collections.abc import Iterator

SIZE = 64 << 20
RECORD = 10_000
ELEMENTS = 1000
SMALL = 4096
MORE_THAN_TENSORFLOW_US = 3
g = tf.io.gfile


def disk_cases(folder: Path) -> list[Case]:
    """Return calls on TensorFlow's own disk, and the same through our plugin of the disk."""
    (folder / "small").write_bytes(bytes(SMALL))
    (folder / "whole").write_bytes(os.urandom(SIZE))
    saved(str(folder / "dataset"))

    def open_and_read(path: str) -> None:
        with g.GFile(path, "rb") as file:
            assert len(file.read(SMALL)) == SMALL

    def read_small(path: str) -> None:
        pieces = tf.data.FixedLengthRecordDataset(path, SMALL, buffer_size=SMALL).batch(1000)
        assert sum(len(batch) for batch in pieces) == SIZE // SMALL

    def read_whole(path: str) -> None:
        assert len(tf.io.read_file(path).numpy()) == SIZE

    calls = (
        ("exists", g.exists, "small", 2000, f"{MORE_THAN_TENSORFLOW_US} us more"),
        ("stat", g.stat, "small", 2000, f"{MORE_THAN_TENSORFLOW_US} us more"),
        ("open and read 4 KiB", open_and_read, "small", 2000, ""),
        ("read 64 MiB by 4 KiB", read_small, "whole", 1, "1.1"),
        ("read 64 MiB whole", read_whole, "whole", 3, "1.1"),
        ("Dataset.load, 1000 elements", loaded, "dataset", 1, "2"),
    )
    cases = []
    for name, call, file, count, target in calls:
        own = f"{name}: TensorFlow"
        cases.append(Case(own, partial(call, str(folder / file)), count))
        ours = partial(call, f"disk://{folder}/{file}")
        cases.append(Case(f"{name}: ours", ours, count, own, target))
    return cases


def saved(folder: str) -> None:
    """Save the dataset that is loaded."""
    tf.data.Dataset.range(ELEMENTS).save(folder)


def loaded(folder: str) -> None:
    """Load the dataset."""
    assert sum(1 for _ in tf.data.Dataset.load(folder)) == ELEMENTS


def records(path: str, **options: Any) -> None:
    """Read the records of a file."""
    read = tf.data.TFRecordDataset(path, **options).batch(1000)
    assert sum(len(batch) for batch in read) == SIZE // RECORD


def bucket_cases(endpoint: str, folder: Path, services: dict[str, mtf.PluginService]) -> list[Case]:
    """Return ways to read records of a bucket, beside downloading them first."""
    import obstore

    bucket = obstore_bucket(endpoint)
    with tf.io.TFRecordWriter(str(folder / "records")) as writer:
        for _ in range(SIZE // RECORD):
            writer.write(os.urandom(RECORD))
    obstore.put(bucket, "records", folder / "records")
    saved(f"s3://{BUCKET}/dataset")

    def downloaded() -> None:
        with (folder / "download").open("wb") as file:
            for piece in obstore.get(bucket, "records"):
                file.write(piece)
        records(str(folder / "download"))

    peer, small = "records: download, then read", {"buffer_size": 256 << 10}
    uri = f"s3://{BUCKET}/records"
    local = str(folder / "dataset")
    cases = [Case(peer, downloaded, 1)]
    for name, service in services.items():
        around = partial(served_by, service)
        read = partial(records, uri)
        cases.append(Case(f"records: {name}", read, 1, peer, "1.0", around))
        read = partial(records, uri, **small)
        cases.append(Case(f"records: {name}, 256 KiB", read, 1, peer, "1.0", around))
    return [
        *cases,
        Case("Dataset.load: local", partial(loaded, local), 1),
        Case(
            "Dataset.load: plugin",
            partial(loaded, f"s3://{BUCKET}/dataset"),
            1,
            "Dataset.load: local",
            around=partial(served_by, services["plugin"]),
        ),
    ]


@contextmanager
def served_by(service: mtf.PluginService) -> Iterator[None]:
    """Have TensorFlow use what a service has for s3."""
    mtft.register(["s3"], service=service)
    yield


def obstore_bucket(endpoint: str) -> Any:
    """Return the bucket as a store of obstore."""
    from obstore.store import S3Store

    return S3Store(
        BUCKET, endpoint=endpoint, access_key_id=KEY, secret_access_key=SECRET, region=REGION,
        client_options={"allow_http": True},
    )  # fmt: skip


def s3fs_filesystem(endpoint: str) -> Any:
    """Return s3fs as its users make it."""
    import s3fs

    client = {"endpoint_url": endpoint, "region_name": REGION}
    return s3fs.S3FileSystem(key=KEY, secret=SECRET, client_kwargs=client)


def pyarrow_filesystem(endpoint: str) -> Any:
    """Return pyarrow's filesystem of S3."""
    from pyarrow import fs

    scheme, _, host = endpoint.partition("://")
    return fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, region=REGION, endpoint_override=host, scheme=scheme
    )


CLIENTS = {"s3fs": s3fs_filesystem, "obstore": obstore_bucket, "pyarrow": pyarrow_filesystem}
"""What serves the bucket besides the plugin."""


def requests_of(cases: list[Case], store: Store) -> None:
    """Print how many requests each case makes, by kind."""
    for case in cases:
        requests: dict[str, int] = {}
        with case.around(), store.counting(requests):
            case.call()
        print(f"{case.name:38}{requests}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--plugin", help="default: the library that the tests download")
    parser.add_argument("--delay", type=float, default=0.01, metavar="SECONDS")
    parser.add_argument("--repeat", type=int, default=5, help="interleaved rounds")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        store = stack.enter_context(running_store(folder))
        os.environ.update(plugin_environment(store.endpoint), AWS_DEFAULT_REGION="us-east-1")
        library = options.plugin or tests_plugin()
        service = stack.enter_context(mtf.PluginService(plugin_paths=[library]))
        service.load()
        mtft.register({"disk": "file", "s3": "s3"}, service=service)
        services = {"plugin": service}
        for name, client in CLIENTS.items():
            services[name] = stack.enter_context(mtf.PluginService())
            services[name].register_filesystem("s3", client(store.endpoint))
        figures = timed(disk_cases(folder), options.repeat)
        cases = bucket_cases(store.endpoint, folder, services)
        store.set(options.delay)
        figures |= timed(cases, options.repeat)
        requests_of(cases, store)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


def timed(cases: list[Case], repeat: int) -> dict[str, dict[str, float]]:
    """Measure cases and print them."""
    measure(cases, repeat)
    return show(cases, ratio_of="best")


if __name__ == "__main__":
    main()
