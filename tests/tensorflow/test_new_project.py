"""What a new project builds runs in a real TensorFlow as it is."""

from __future__ import annotations

import os
import shutil

from modular_tf.check.project_template.project import project_names
from tests.fixtures.matrices import BEYOND_THE_SAMPLE
from tests.fixtures.tensorflow import environment_of_tensorflow, tensorflow_folder
from tests.project_template.building import built_library

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
    assert not gfile.isdir("newstore://host/moved")
    lines = tf.data.TextLineDataset("newstore://host/moved")
    assert [line.numpy() for line in lines] == [b"written by TensorFlow"]
    gfile.rmtree("newstore://host")
    assert not gfile.exists("newstore://host")
    print("reached the end")
"""


@BEYOND_THE_SAMPLE
def test_both_kinds_are_loaded_from_the_folder_of_their_wheels(run_python, tmp_path):
    """TensorFlow opens everything in `tensorflow-plugins` beside it when it is imported."""
    folder = tmp_path / "site-packages" / "tensorflow-plugins"
    folder.mkdir(parents=True)
    for names in (FILESYSTEM, DEVICE):
        shutil.copy(built_library(names), folder)
    for installed in tensorflow_folder().iterdir():
        (folder.parent / installed.name).symlink_to(installed)
    environment = environment_of_tensorflow()
    path = os.pathsep.join([str(folder.parent), environment["PYTHONPATH"]])
    library = folder / f"lib{FILESYSTEM.library}.so"

    child = run_python(CODE, library, env={**environment, "PYTHONPATH": path})

    assert child.stdout == "reached the end\n"
