"""What a new project builds runs in a real TensorFlow as it is.

Runs where MODULAR_TF_TENSORFLOW_PYTHON names an interpreter that has TensorFlow. Elsewhere these
tests are deselected.
"""

from __future__ import annotations

import os
import shutil

import pytest

from modular_tf.check.project_template.project import project_names
from tests.fixtures.children import describe
from tests.fixtures.process_group import run_in_group
from tests.project_template.building import built_library

pytestmark = [pytest.mark.wild, pytest.mark.tensorflow]

FILESYSTEM = project_names("filesystem", "New-Store")
DEVICE = project_names("device", "class", device_type="NEW_CHIP")

CODE = """
import sys

import tensorflow as tf

physical = tf.config.list_physical_devices("NEW_CHIP")
assert [device.name for device in physical] == ["/physical_device:NEW_CHIP:0"]
here = tf.random.uniform((1 << 16,))
with tf.device("/device:NEW_CHIP:0"):
    there = tf.identity(here)
assert there.device.endswith("NEW_CHIP:0")
assert (here.numpy() == there.numpy()).all()

tf.experimental.register_filesystem_plugin(sys.argv[1])
gfile = tf.io.gfile
gfile.makedirs("newstore://host/a/b")
with gfile.GFile("newstore://host/a/file", "w") as file:
    file.write("written by TensorFlow")
gfile.copy("newstore://host/a/file", "newstore://host/a/b/copy")
gfile.rename("newstore://host/a/b/copy", "newstore://host/moved")
assert gfile.GFile("newstore://host/moved").read() == "written by TensorFlow"
assert sorted(gfile.listdir("newstore://host/a")) == ["b", "file"]
assert gfile.glob("newstore://host/m*") == ["newstore://host/moved"]
assert gfile.isdir("newstore://host/a/b")
assert not gfile.isdir("newstore://host/moved")
lines = tf.data.TextLineDataset("newstore://host/moved")
assert [line.numpy() for line in lines] == [b"written by TensorFlow"]
gfile.rmtree("newstore://host")
assert not gfile.exists("newstore://host")
print("reached the end")
"""


def test_both_kinds_from_where_their_wheels_put_them(tmp_path):
    """TensorFlow opens everything in this folder when it is imported, filesystems too."""
    folder = tmp_path / "site-packages" / "tensorflow-plugins"
    folder.mkdir(parents=True)
    for names in (FILESYSTEM, DEVICE):
        shutil.copy(built_library(names), folder)
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder.parent),
        "TF_CPP_MIN_LOG_LEVEL": "2",
    }
    library = folder / f"lib{FILESYSTEM.library}.so"
    command = [os.environ["MODULAR_TF_TENSORFLOW_PYTHON"], "-X", "faulthandler", "-c", CODE]
    child = run_in_group([*command, str(library)], cwd=tmp_path, env=environment, timeout=200)

    assert child.returncode == 0, describe(child)
    assert child.stdout == "reached the end\n"
