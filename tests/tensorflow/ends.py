"""Ways in which a process may end while TensorFlow has files of ours open.

Runs in a child process: `python ends.py END FOLDER PLUGIN`. FOLDER is an empty one of the disk;
PLUGIN takes as many seconds to close a file as its path says. An end is clean where the status is 0
and nothing of `NOISE` is on the standard error.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    import modular_tf as mtf

NOISE = ("Traceback", "terminate called", "pure virtual", "Fatal", "Aborted", "Segmentation")
_FOR_EVER = 100_000
_LIMIT_S = 5  # the first call maps the plugin

ends: dict[str, Callable[[mtf.PluginService, str], object]] = {}


def end(name: str) -> Callable[[Callable[[mtf.PluginService, str], object]], None]:
    """Add what is done before an end; what it returns lives until then."""
    return lambda function: ends.update({name: function})


def write_records(path: str) -> None:
    """Write a file of two megabytes."""
    import tensorflow as tf

    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(2000):
            writer.write(b"x" * 1000)


@end("normal")
def _normal(_service: mtf.PluginService, folder: str) -> None:
    import tensorflow as tf

    write_records("other://r")
    write_records(f"disk://{folder}/r")
    assert len(tf.io.gfile.GFile("other://r", "rb").read()) > 2_000_000
    assert sum(1 for _ in tf.data.TFRecordDataset(f"disk://{folder}/r")) == 2000


@end("abandoned iterators with open files")
def _abandoned(_service: mtf.PluginService, folder: str) -> object:
    import tensorflow as tf

    write_records("other://r")
    kept: list[object] = []
    for _ in range(4):
        records = tf.data.TFRecordDataset(["other://r"] * 1000, buffer_size=100)
        iterator = iter(records.prefetch(8))
        next(iterator)
        kept.append(iterator)
    file = tf.io.gfile.GFile("other://r", "rb")
    file.read(1)
    writer = tf.io.TFRecordWriter(f"disk://{folder}/open")
    writer.write(b"x")
    return [*kept, file, writer]


@end("closed service")
def _closed(service: mtf.PluginService, _folder: str) -> object:
    import tensorflow as tf

    write_records("other://r")
    records = tf.data.TFRecordDataset(["other://r"] * 1000, buffer_size=100)
    kept = iter(records.prefetch(8))
    next(kept)
    service.close()
    return kept


@end("filesystem that hangs")
def _filesystem_hangs(service: mtf.PluginService, _folder: str) -> object:
    import tensorflow as tf

    import modular_tf.tensorflow as mtft

    class Stuck:
        def new_random_access_file(self, _uri: str) -> None:
            threading.Event().wait()

    mtft.register_filesystem("stuck", Stuck(), service=service)
    kept = iter(tf.data.TFRecordDataset(["stuck://r"]).prefetch(1))
    threading.Thread(target=next, args=(kept,), daemon=True).start()
    time.sleep(0.5)
    return kept


@end("plugin that hangs")
def _plugin_hangs(_service: mtf.PluginService, _folder: str) -> object:
    file = _file_that_never_closes()
    threading.Thread(target=file.close, daemon=True).start()
    time.sleep(0.5)
    return file


@end("plugin that hangs, with a limit of time")
def _plugin_hangs_for_long(_service: mtf.PluginService, _folder: str) -> object:
    import tensorflow as tf

    file = _file_that_never_closes()
    try:
        file.close()
    except tf.errors.DeadlineExceededError:
        return file
    raise AssertionError("the plugin closed it")


def _file_that_never_closes() -> object:
    import tensorflow as tf

    file = tf.io.gfile.GFile(f"ending://h/{_FOR_EVER}", "w")
    file.write("text")
    return file


def main() -> None:
    """Do what is done before the end that the command line names."""
    name, folder, plugin = sys.argv[1:]
    import tensorflow as tf  # noqa: F401  (first, as most programs do)

    import modular_tf as mtf
    import modular_tf.tensorflow as mtft

    limit_s = _LIMIT_S if "limit" in name else None
    service = mtf.PluginService(plugin_paths=[plugin], call_timeout_s=limit_s)
    service.load()
    mtft.register({"other": "ram", "disk": "file", "ending": "ending"}, service=service)
    kept.append(ends[name](service, folder))


kept: list[object] = []

if __name__ == "__main__":
    main()
