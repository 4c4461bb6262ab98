"""What TensorFlow's users read, from files that lie in a store that nobody can write to.

Runs in a child process: `python reading_actions.py SETUP FOLDER ROOT`. The files are written into
FOLDER of the disk; then SETUP, which finds `folder`, registers the scheme of ROOT, where the files
are then. The last line is a JSON object with what came of each action.
"""

from __future__ import annotations

import json
import sys
from functools import partial

import tensorflow as tf

import modular_tf as mtf
import modular_tf.tensorflow as mtft
from tests.tensorflow.action_list import action, actions, expect, outcome_of

g = tf.io.gfile


def model() -> tf.Module:
    """Return a module with one value."""
    module = tf.Module()
    module.value = tf.Variable([1.0, 2.0])
    return module


def write_all(folder: str) -> None:
    """Write the files."""
    with g.GFile(f"{folder}/text", "w") as file:
        file.write("\n".join(f"line {number}" for number in range(5000)))
    for number in range(4):
        with tf.io.TFRecordWriter(f"{folder}/{number}.tfrecord") as writer:
            for index in range(200):
                writer.write(bytes([number]) * index * 10)
    g.makedirs(f"{folder}/sub/deep")
    with g.GFile(f"{folder}/sub/deep/x", "w") as file:
        file.write("x")
    tf.data.Dataset.range(300).save(f"{folder}/saved")
    tf.train.Checkpoint(value=tf.Variable(3.0)).write(f"{folder}/checkpoint-1")
    tf.saved_model.save(model(), f"{folder}/model")


@action
def gfile(root: str) -> None:
    """`GFile`, `exists`, `stat`, `copy`, `read_file`."""
    expect(g.exists(f"{root}/text"), True)
    expect(g.exists(f"{root}/none"), False)
    expect(g.stat(f"{root}/sub/deep/x").length, 1)
    expect(g.GFile(f"{root}/text").readline(), "line 0\n")
    g.copy(f"{root}/text", "ram://text", overwrite=True)
    expect(g.GFile("ram://text").read().splitlines()[4999], "line 4999")
    expect(len(tf.io.read_file(f"{root}/text").numpy().splitlines()), 5000)


@action
def listing(root: str) -> None:
    """`listdir`, `glob`, `walk`, `isdir`."""
    expect(g.isdir(f"{root}/sub"), True)
    expect(g.isdir(f"{root}/text"), False)
    expect([name.rstrip("/") for name in g.listdir(f"{root}/sub")], ["deep"])
    expect(sorted(g.glob(f"{root}/*.tfrecord")), [f"{root}/{n}.tfrecord" for n in range(4)])
    expect([files for _, _, files in g.walk(f"{root}/sub") if files], [["x"]])


@action
def records(root: str) -> None:
    """TFRecord, interleave with 8 threads."""
    names = [f"{root}/{number}.tfrecord" for number in range(4)]
    several = tf.data.Dataset.from_tensor_slices(names).interleave(
        tf.data.TFRecordDataset, cycle_length=8, num_parallel_calls=8
    )
    expect(sum(1 for _ in several), 800)
    one_by_one = tf.data.TFRecordDataset(names[0], buffer_size=0)
    expect(sum(len(r.numpy()) for r in one_by_one), 199_000)


@action
def text_and_fixed_length(root: str) -> None:
    """`TextLineDataset`, `FixedLengthRecordDataset`."""
    expect(sum(1 for _ in tf.data.TextLineDataset(f"{root}/text")), 5000)
    expect(sum(1 for _ in tf.data.FixedLengthRecordDataset(f"{root}/sub/deep/x", 1)), 1)


@action
def dataset(root: str) -> None:
    """`Dataset.load`."""
    expect([int(n) for n in tf.data.Dataset.load(f"{root}/saved")], list(range(300)))


@action
def checkpoint(root: str) -> None:
    """`Checkpoint.read`."""
    value = tf.Variable(0.0)
    tf.train.Checkpoint(value=value).read(f"{root}/checkpoint-1").assert_consumed()
    expect(float(value), 3.0)


@action
def saved_model(root: str) -> None:
    """SavedModel."""
    expect(list(tf.saved_model.load(f"{root}/model").value.numpy()), [1.0, 2.0])


def main() -> None:
    """Perform all actions and write what came of them."""
    setup, folder, root = sys.argv[1:]
    write_all(folder)
    exec(setup, {"mtf": mtf, "mtft": mtft, "folder": folder})
    found = {name: outcome_of(partial(perform, root)) for name, perform in actions.items()}
    print(json.dumps(found))


if __name__ == "__main__":
    main()
