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
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")

import tensorflow as tf
from bucket_content import plugin_environment
from buckets import BUCKET, running_store, tests_plugin
from interleaved_cases import Case, measure, show

import modular_tf as mtf
import modular_tf.tensorflow as mtft

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


def bucket_cases(endpoint: str, folder: Path) -> list[Case]:
    """Return ways to read records of a bucket, beside downloading them first."""
    import boto3

    client = boto3.client("s3", endpoint_url=endpoint)
    with tf.io.TFRecordWriter(str(folder / "records")) as writer:
        for _ in range(SIZE // RECORD):
            writer.write(os.urandom(RECORD))
    client.upload_file(str(folder / "records"), BUCKET, "records")
    saved(f"s3://{BUCKET}/dataset")

    def downloaded() -> None:
        client.download_file(BUCKET, "records", str(folder / "download"))
        records(str(folder / "download"))

    peer, small = "records: download, then read", {"buffer_size": 256 << 10}
    uri = f"{BUCKET}/records"
    local = str(folder / "dataset")
    return [
        Case(peer, downloaded, 1),
        Case("records: s3://", partial(records, f"s3://{uri}"), 1, peer, "1.3"),
        Case("records: reads of 256 KiB", partial(records, f"s3://{uri}", **small), 1, peer, "1.3"),
        Case("records: another scheme", partial(records, f"far://{uri}"), 1, peer, "1.3"),
        Case("Dataset.load: local", partial(loaded, local), 1),
        Case(
            "Dataset.load: s3", partial(loaded, f"s3://{BUCKET}/dataset"), 1, "Dataset.load: local"
        ),
    ]


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
        mtft.register({"disk": "file", "s3": "s3", "far": "s3"}, service=service)
        figures = timed(disk_cases(folder), options.repeat)
        cases = bucket_cases(store.endpoint, folder)
        store.set(options.delay)
        figures |= timed(cases, options.repeat)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


def timed(cases: list[Case], repeat: int) -> dict[str, dict[str, float]]:
    """Measure cases and print them."""
    measure(cases, repeat)
    return show(cases, ratio_of="best")


if __name__ == "__main__":
    main()
