"""Round trips in TensorFlow through the host device plugin: the other side of `device_copies.py`.

Usage: PYTHON benchmarks/tensorflow_round_trips.py FOLDER N_BYTES

PYTHON has TensorFlow, and needs no modular_tf; FOLDER has the plugin as `scripts/build_plugins`
leaves it, of device type MTF_CPU. It prints the names of its round trips as JSON; then it runs the
one whose name it reads, and prints how many microseconds that took, until its input ends.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

Call = Callable[[], object]


def round_trips(folder: Path, n_bytes: int) -> dict[str, Call]:
    """Load the plugin, and return what can be timed."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    import tensorflow as tf
    from tensorflow.python.framework import load_library

    load_library.load_pluggable_device_library(str(folder / "host_device" / "libhost_device.so"))
    with tf.device("/device:CPU:0"):
        here = tf.reshape(tf.range(n_bytes // 4, dtype=tf.float32), (-1,))
    array = here.numpy()

    def there(value: object) -> tf.Tensor:
        with tf.device("/device:MTF_CPU:0"):
            return tf.identity(value)

    def back(value: tf.Tensor) -> tf.Tensor:
        with tf.device("/device:CPU:0"):
            return tf.identity(value)

    assert there(here).device.endswith("MTF_CPU:0")
    assert (back(there(here)).numpy() == array).all()
    return {
        "TensorFlow: tensor there and back": lambda: back(there(here)),
        "TensorFlow: tensor there, numpy back": lambda: there(here).numpy(),
    }


def main() -> None:
    """Answer until there is no more to read."""
    calls = round_trips(Path(sys.argv[1]), int(sys.argv[2]))
    print(json.dumps(list(calls)), flush=True)
    for line in sys.stdin:
        call = calls[line.strip()]
        start = time.perf_counter_ns()
        call()
        print((time.perf_counter_ns() - start) / 1e3, flush=True)


if __name__ == "__main__":
    main()
