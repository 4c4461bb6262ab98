"""A plugin and a real TensorFlow in one process, in every order of arrival.

Runs where MODULAR_TF_TENSORFLOW_PYTHON names an interpreter that has TensorFlow and this package;
`scripts/tensorflow_coexistence` makes one. Elsewhere these tests are deselected.
"""

from __future__ import annotations

import os
from textwrap import dedent

import pytest

from tests.fixtures.children import describe
from tests.fixtures.process_group import run_in_group

pytestmark = [pytest.mark.wild, pytest.mark.emulator, pytest.mark.tensorflow]

_STEPS = """
    import os, sys, tempfile

    kept = []

    def plugin():
        import modular_tf as mtf
        if not kept:
            path = os.environ["WILD_PLUGIN"]
            kept.append(mtf.PluginService(plugin_paths=[path]))
            kept[0].load(path)
        base = os.environ["WILD_BASE"]
        fs = kept[0].filesystem_for(base)
        content = os.urandom(3 << 20)
        with fs.open(base + "/file", "wb") as file:
            file.write(content)
        with fs.open(base + "/file", "rb") as file:
            assert file.read() == content
        assert fs.get_children(base) == ["file"]

    def tensorflow():
        import tensorflow as tf
        assert tf.reduce_sum(tf.ones((300, 300)) @ tf.ones((300, 300))).numpy() == 300.0**3
        folder = tempfile.mkdtemp(dir=".")
        with tf.io.TFRecordWriter(folder + "/records") as writer:
            writer.write(b"record")
        records = tf.data.TFRecordDataset(folder + "/records", num_parallel_reads=2)
        assert [record.numpy() for record in records] == [b"record"]
        checkpoint = tf.train.Checkpoint(value=tf.Variable(7))
        restored = tf.train.Checkpoint(value=tf.Variable(0))
        restored.restore(checkpoint.save(folder + "/checkpoint")).assert_consumed()
        assert restored.value.numpy() == 7
        assert tf.io.gfile.listdir(folder)

    def thereafter():
        for symbol in ("libmodular_tf_framework.so.2",):
            maps = open("/proc/self/maps").read()
            assert symbol in maps and "libtensorflow_framework.so.2" in maps

    for step in sys.argv[1].split(","):
        globals()[step]()
    thereafter()
    print("reached the end")
    """


@pytest.fixture
def run_steps(wild_environment, tmp_path):
    """Take steps in one process of the interpreter that has TensorFlow."""

    def run(store, steps):
        variables = {**os.environ, **wild_environment(store, f"tensorflow-{os.getpid()}")}
        variables["TF_CPP_MIN_LOG_LEVEL"] = "2"
        command = [os.environ["MODULAR_TF_TENSORFLOW_PYTHON"], "-X", "faulthandler", "-c"]
        subject = [*command, dedent(_STEPS), steps]
        child = run_in_group(subject, cwd=tmp_path, env=variables, timeout=200)
        assert child.returncode == 0, describe(child)
        assert child.stdout == "reached the end\n"

    return run


ORDERS = [
    "plugin,tensorflow",
    "tensorflow,plugin",
    "plugin,tensorflow,plugin",
    "tensorflow,plugin,tensorflow",
]


@pytest.mark.parametrize("steps", ORDERS)
def test_both_work_and_the_process_ends_in_order(steps, s3_store, run_steps):
    run_steps(s3_store, steps)


@pytest.mark.parametrize("steps", ORDERS[:2])
def test_the_plugin_of_gcs_too(steps, gcs_store, run_steps):
    run_steps(gcs_store, steps)
