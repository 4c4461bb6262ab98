"""Time the calls that users make most, beside their peers, on the same files in one run.

Usage: python benchmarks/hot_paths.py [--json FILE] [--repeat N]

Peers are plain Python, fsspec's local filesystem and, where it can be imported, TensorFlow's
`tf.io.gfile`. Each figure is the best of several interleaved rounds, in microseconds per call;
the ratio is to plain Python. Nothing here fails: targets are printed beside the figures.
"""

from __future__ import annotations

import argparse
import gc
import glob
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import modular_tf as mtf

MIB = 1 << 20
BIG = 64 * MIB
Call = Callable[[], object]


@dataclass
class Case:
    """One thing to do, by several peers; the first is the measure."""

    name: str
    target: str
    calls: dict[str, Call]
    rounds: int
    loops: int


def best_of(case: Case) -> dict[str, float]:
    """Return microseconds per call for each peer, best of interleaved rounds."""
    best = dict.fromkeys(case.calls, float("inf"))
    for _ in range(case.rounds):
        for name, call in case.calls.items():
            gc.collect()
            start = time.perf_counter()
            for _ in range(case.loops):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / case.loops * 1e6)
    return best


def read_pieces(open_file: Call) -> Call:
    """Return a call that reads a big file by 1 MiB into one buffer."""
    buffer = memoryview(bytearray(MIB))

    def call() -> None:
        with open_file() as file:  # type: ignore[attr-defined]
            while file.readinto(buffer):
                pass

    return call


def read_whole(open_file: Call) -> Call:
    """Return a call that reads a file in one go."""

    def call() -> bytes:
        with open_file() as file:  # type: ignore[attr-defined]
            return file.read()

    return call


def read_first(open_file: Call) -> Call:
    """Return a call that reads the first 4 KiB of a file."""

    def call() -> bytes:
        with open_file() as file:  # type: ignore[attr-defined]
            return file.read(4096)

    return call


def cases(folder: Path, repeat: int) -> list[Case]:
    """Return what to measure on files in a folder."""
    small, big, many = folder / "small", folder / "big", folder / "many"
    small.write_bytes(os.urandom(4096))
    big.write_bytes(os.urandom(MIB) * 64)
    many.mkdir()
    for number in range(1000):
        (many / f"file{number:04}.txt").touch()
    service = mtf.default_service()
    fs = service.filesystem("")
    s, b, pattern = str(small), str(big), str(many / "file*5.txt")

    def reader_4k() -> bytes:
        with fs.new_random_access_file(s) as file:
            return file.read(0, 4096)

    def reader_pieces() -> None:
        buffer = memoryview(bytearray(MIB))
        with fs.new_random_access_file(b) as file:
            offset = 0
            while count := file.readinto(offset, buffer):
                offset += count

    def reader_whole() -> bytes:
        with fs.new_random_access_file(b) as file:
            return file.read(0, BIG)

    made = [
        Case("stat", "<= 1.3 x os.stat", {
            "plain": lambda: os.stat(s), "modular_tf": lambda: fs.stat(s),
            "mtf.gfile": lambda: mtf.gfile.stat(s)}, repeat, 20000),
        Case("exists", "<= 1.3 x os.stat", {
            "plain": lambda: os.stat(s), "modular_tf": lambda: fs.path_exists(s),
            "mtf.gfile": lambda: mtf.gfile.exists(s)}, repeat, 20000),
        Case("open + read 4 KiB", "<= 1.5 x open().read()", {
            "plain": read_whole(lambda: open(s, "rb")), "modular_tf": reader_4k,
            "mtf read_file": lambda: fs.read_file(s),
            "mtf fs.open": read_whole(lambda: fs.open(s, "rb")),
            "mtf.gfile": read_whole(lambda: mtf.gfile.GFile(s, "rb"))}, repeat, 3000),
        Case("open + read(4096)", "<= 1.5 x open().read(4096)", {
            "plain": read_first(lambda: open(s, "rb")), "modular_tf": reader_4k,
            "mtf.gfile": read_first(lambda: mtf.gfile.GFile(s, "rb"))}, repeat, 3000),
        Case("64 MiB by 1 MiB readinto", "<= 1.1 x raw", {
            "plain": read_pieces(lambda: open(b, "rb", buffering=0)), "modular_tf": reader_pieces,
            "mtf fs.open": read_pieces(lambda: fs.open(b, "rb", buffering=0))}, repeat, 2),
        Case("whole 64 MiB", "<= 1.1 x raw", {
            "plain": read_whole(lambda: open(b, "rb", buffering=0)), "modular_tf": reader_whole,
            "mtf fs.open": read_whole(lambda: fs.open(b, "rb")),
            "mtf.gfile": read_whole(lambda: mtf.gfile.GFile(b, "rb"))}, repeat, 2),
        Case("glob of 1000 files", "3 x faster than tf", {
            "plain": lambda: glob.glob(pattern),
            "modular_tf": lambda: fs.get_matching_paths(pattern),
            "mtf.gfile": lambda: mtf.gfile.glob(pattern)}, repeat, 20),
    ]  # fmt: skip
    add_fsspec(made, s, b, pattern)
    add_tensorflow(made, s, b, pattern)
    return made


def add_fsspec(made: list[Case], s: str, b: str, pattern: str) -> None:
    """Add fsspec's local filesystem where it is installed."""
    try:
        from fsspec.implementations.local import LocalFileSystem
    except ImportError:
        return
    local = LocalFileSystem()
    calls: list[Call] = [
        lambda: local.info(s), lambda: local.exists(s),
        read_whole(lambda: local.open(s, "rb")), read_first(lambda: local.open(s, "rb")),
        read_pieces(lambda: local.open(b, "rb")),
        read_whole(lambda: local.open(b, "rb")), lambda: local.glob(pattern),
    ]  # fmt: skip
    for case, call in zip(made, calls, strict=True):
        case.calls["fsspec"] = call


def add_tensorflow(made: list[Case], s: str, b: str, pattern: str) -> None:
    """Add TensorFlow's gfile where it is installed."""
    try:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        from tensorflow.io import gfile
    except ImportError:
        print("TensorFlow is not installed here: its column is missing", file=sys.stderr)
        return

    def pieces() -> None:
        with gfile.GFile(b, "rb") as file:
            while file.read(MIB):
                pass

    calls: list[Call] = [
        lambda: gfile.stat(s), lambda: gfile.exists(s), read_whole(lambda: gfile.GFile(s, "rb")),
        read_first(lambda: gfile.GFile(s, "rb")), pieces,
        read_whole(lambda: gfile.GFile(b, "rb")), lambda: gfile.glob(pattern),
    ]  # fmt: skip
    for case, call in zip(made, calls, strict=True):
        case.calls["tf.io.gfile"] = call


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument("--repeat", type=int, default=7, help="interleaved rounds")
    options = parser.parse_args()
    figures = []
    with tempfile.TemporaryDirectory() as folder:
        for case in cases(Path(folder), options.repeat):
            best = best_of(case)
            plain = best["plain"]
            print(f"\n{case.name}   (target: {case.target})")
            for name, value in best.items():
                print(f"  {name:12} {value:12.2f} us   {value / plain:6.2f} x")
            figures.append({"case": case.name, "target": case.target, "microseconds": best})
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
