"""What TensorFlow's users do with files, on a folder that the command line names.

Runs in a child process: `python actions.py SETUP ROOT`. Its last line is a JSON object
with what came of each action: "done", or the exception.
"""

from __future__ import annotations

import json
import sys
from functools import partial
from typing import TYPE_CHECKING

import tensorflow as tf

import modular_tf as mtf
import modular_tf.tensorflow as mtft
from tests.tensorflow.action_list import action, actions, expect, outcome_of

if TYPE_CHECKING:
    from collections.abc import Callable

g = tf.io.gfile


def write(path: str, data: str | bytes) -> None:
    """Write a whole file."""
    with g.GFile(path, "wb" if isinstance(data, bytes) else "w") as file:
        file.write(data)


def fails(kind: type[Exception], call: Callable[[], object]) -> str:
    """Return the message of the error that a call must raise."""
    try:
        result = call()
    except kind as error:
        return str(error)
    raise AssertionError(f"expected {kind.__name__}, found {result!r}")


@action
def gfile_files(folder: str) -> None:
    """`GFile`: read, write, seek."""
    path = f"{folder}/file"
    write(path, "one\ntwo\n")
    expect(g.GFile(path).read(), "one\ntwo\n")
    expect(g.GFile(path).readlines(), ["one\n", "two\n"])
    expect(g.GFile(path, "rb").read(5), b"one\nt")
    with g.GFile(path) as file:
        file.seek(4)
        expect(file.read(), "two\n")
        expect(file.size(), 8)
    write(path, b"")
    expect(g.GFile(path, "rb").read(), b"")
    expect(g.stat(path).length, 0)


@action
def gfile_append(folder: str) -> None:
    """`GFile`: append."""
    path = f"{folder}/file"
    write(path, "one")
    with g.GFile(path, "a") as file:
        file.write("two")
        file.flush()
    expect(g.GFile(path).read(), "onetwo")


@action
def gfile_tree(folder: str) -> None:
    """`makedirs`, `listdir`, `glob`, `walk`, `rmtree`."""
    g.makedirs(f"{folder}/a/b")
    write(f"{folder}/a/x", "x")
    write(f"{folder}/a/b/y", "y")
    expect(sorted(name.rstrip("/") for name in g.listdir(f"{folder}/a")), ["b", "x"])
    expect(g.isdir(f"{folder}/a/b"), True)
    expect(g.isdir(f"{folder}/a/x"), False)
    expect(g.isdir(f"{folder}/none"), False)
    expect(g.exists(f"{folder}/none"), False)
    expect(g.glob(f"{folder}/a/*"), [f"{folder}/a/b", f"{folder}/a/x"])
    walked = [
        (top, sorted(n.rstrip("/") for n in dirs), files)
        for top, dirs, files in g.walk(f"{folder}/a")
    ]
    expect(walked[0], (f"{folder}/a", ["b"], ["x"]))
    g.rmtree(f"{folder}/a")
    expect(g.exists(f"{folder}/a/b/y"), False)


@action
def gfile_moves(folder: str) -> None:
    """`rename`, `copy`, `remove`."""
    write(f"{folder}/old", "content")
    g.rename(f"{folder}/old", f"{folder}/new")
    expect(g.exists(f"{folder}/old"), False)
    g.copy(f"{folder}/new", f"{folder}/copy")
    fails(tf.errors.AlreadyExistsError, lambda: g.copy(f"{folder}/new", f"{folder}/copy"))
    g.copy(f"{folder}/new", f"{folder}/copy", overwrite=True)
    expect(g.GFile(f"{folder}/copy").read(), "content")
    g.remove(f"{folder}/new")
    expect(g.exists(f"{folder}/new"), False)


@action
def gfile_other_scheme(folder: str) -> None:
    """`copy` from and to another scheme."""
    write("ram://elsewhere", b"x" * 300_000)
    g.copy("ram://elsewhere", f"{folder}/here", overwrite=True)
    g.copy(f"{folder}/here", "ram://back", overwrite=True)
    expect(g.GFile("ram://back", "rb").read(), b"x" * 300_000)


@action
def errors(folder: str) -> None:
    """TensorFlow's error for a missing file."""
    said = fails(tf.errors.NotFoundError, lambda: g.GFile(f"{folder}/none").read())
    if "none" not in said:
        raise AssertionError(f"the message names no path: {said}")
    fails(tf.errors.NotFoundError, lambda: g.stat(f"{folder}/none"))
    fails(tf.errors.NotFoundError, lambda: g.remove(f"{folder}/none"))
    fails(tf.errors.NotFoundError, lambda: g.listdir(f"{folder}/none"))


@action
def read_and_write_file(folder: str) -> None:
    """`read_file`, `write_file`, `matching_files`."""
    tf.io.write_file(f"{folder}/deep/er/file", b"content")
    expect(tf.io.read_file(f"{folder}/deep/er/file").numpy(), b"content")
    expect(
        [p.numpy() for p in tf.io.matching_files(f"{folder}/deep/*/*")],
        [f"{folder}/deep/er/file".encode()],
    )


@action
def records(folder: str) -> None:
    """TFRecord: write, read, interleave with 8 threads."""
    names = []
    for number in range(4):
        names.append(f"{folder}/{number}.tfrecord")
        with tf.io.TFRecordWriter(names[-1]) as writer:
            for index in range(200):
                writer.write(bytes([number]) * index * 10)
    read = [r.numpy() for r in tf.data.TFRecordDataset(names[1], buffer_size=4096)]
    expect(read, [b"\1" * index * 10 for index in range(200)])
    several = tf.data.Dataset.from_tensor_slices(names).interleave(
        tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=8
    )
    expect(sum(1 for _ in several), 800)
    one_by_one = tf.data.TFRecordDataset(names[0], buffer_size=0)
    expect(sum(len(r.numpy()) for r in one_by_one), 199_000)


@action
def text_and_fixed_length(folder: str) -> None:
    """`TextLineDataset`, `FixedLengthRecordDataset`."""
    lines = [f"line {number}" for number in range(5000)]
    write(f"{folder}/text", "\n".join(lines))
    expect([line.numpy().decode() for line in tf.data.TextLineDataset(f"{folder}/text")], lines)
    write(f"{folder}/fixed", bytes(range(256)) * 10)
    fixed = [r.numpy() for r in tf.data.FixedLengthRecordDataset(f"{folder}/fixed", 256)]
    expect(fixed, [bytes(range(256))] * 10)


@action
def cache(folder: str) -> None:
    """`Dataset.cache`."""
    numbers = tf.data.Dataset.range(100).cache(f"{folder}/cache")
    expect([int(n) for n in numbers], list(range(100)))
    again = tf.data.Dataset.range(100).cache(f"{folder}/cache")
    expect(sum(int(n) for n in again), 4950)


@action
def save_and_load(folder: str) -> None:
    """`Dataset.save`, `Dataset.load`."""
    tf.data.Dataset.range(300).save(f"{folder}/saved")
    expect([int(n) for n in tf.data.Dataset.load(f"{folder}/saved")], list(range(300)))


@action
def snapshot(folder: str) -> None:
    """`Dataset.snapshot`."""
    for _ in range(2):
        numbers = tf.data.Dataset.range(50).snapshot(f"{folder}/snapshot")
        expect(sorted(int(n) for n in numbers), list(range(50)))


@action
def checkpoint(folder: str) -> None:
    """`Checkpoint`, `CheckpointManager`."""
    value = tf.Variable(tf.range(500_000, dtype=tf.float32))
    manager = tf.train.CheckpointManager(tf.train.Checkpoint(value=value), f"{folder}/many", 2)
    for _ in range(3):
        manager.save()
    expect(len(manager.checkpoints), 2)
    expect(tf.train.latest_checkpoint(f"{folder}/many"), manager.latest_checkpoint)
    value.assign(tf.zeros_like(value))
    manager.restore_or_initialize()
    expect(float(value[499_999]), 499_999.0)


@action
def saved_model(folder: str) -> None:
    """SavedModel."""
    module = tf.Module()
    module.value = tf.Variable([1.0, 2.0])
    tf.saved_model.save(module, f"{folder}/model")
    expect(list(tf.saved_model.load(f"{folder}/model").value.numpy()), [1.0, 2.0])


@action
def keras(folder: str) -> None:
    """Keras: models, weights, `BackupAndRestore`."""
    model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(2)])
    model.save(f"{folder}/model.keras")
    loaded = tf.keras.models.load_model(f"{folder}/model.keras")
    expect((loaded.weights[0].numpy() == model.weights[0].numpy()).all(), True)
    model.save_weights(f"{folder}/model.weights.h5")
    model.load_weights(f"{folder}/model.weights.h5")
    model.compile("sgd", "mse")
    backup = tf.keras.callbacks.BackupAndRestore(f"{folder}/backup")
    model.fit(tf.ones((4, 3)), tf.ones((4, 2)), epochs=2, verbose=0, callbacks=[backup])


@action
def summaries(folder: str) -> None:
    """summaries."""
    writer = tf.summary.create_file_writer(folder)
    with writer.as_default():
        for step in range(3):
            tf.summary.scalar("loss", 1.0 / (step + 1), step=step)
            writer.flush()
    writer.close()
    (name,) = g.listdir(folder)
    events = list(tf.compat.v1.train.summary_iterator(f"{folder}/{name}"))
    expect([e.step for e in events if e.summary.value], [0, 1, 2])


@action
def memory_region(folder: str) -> None:
    """memory regions (`ImmutableConst`)."""
    write(f"{folder}/region", bytes(range(64)))
    read = tf.raw_ops.ImmutableConst(
        dtype=tf.uint8, shape=[64], memory_region_name=f"{folder}/region"
    )
    expect(bytes(read.numpy()), bytes(range(64)))


def perform_in(folder: str, perform: Callable[[str], None]) -> None:
    """Perform an action in a new folder of its own."""
    g.makedirs(folder)
    perform(folder)


def main() -> None:
    """Perform all actions and write what came of them."""
    setup, root = sys.argv[1:3]
    exec(setup, {"mtf": mtf, "mtft": mtft, "tf": tf})
    found = {
        name: outcome_of(partial(perform_in, f"{root}/{name}", perform))
        for name, perform in actions.items()
    }
    print(json.dumps({"found": found, "version": tf.__version__}))


if __name__ == "__main__":
    main()
