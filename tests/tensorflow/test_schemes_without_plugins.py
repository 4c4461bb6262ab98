"""Schemes that no plugin serves, in TensorFlow: clients of fsspec, named by the configuration."""

from __future__ import annotations

import os
from textwrap import dedent

import pytest

from tests.fixtures.clients import S3_CLIENTS, client_libraries, with_places
from tests.fixtures.matrices import sampled
from tests.fixtures.tensorflow import tensorflow_folder

pytestmark = [pytest.mark.xdist_group("tensorflow"), pytest.mark.emulator]

_READ_AND_WRITE = """
import sys
import tensorflow as tf
import modular_tf.tensorflow.auto as auto

uri = sys.argv[1]
scheme = uri.partition(":")[0]
assert scheme in auto.registration.schemes, str(auto.registration)
with tf.io.TFRecordWriter(uri) as writer:
    for number in range(100):
        writer.write(b"%d" % number)
found = [record.numpy() for record in tf.data.TFRecordDataset(uri)]
assert found == [b"%d" % number for number in range(100)], found
assert tf.io.gfile.listdir(uri.rpartition("/")[0]) == [uri.rpartition("/")[2]]
assert {"s3fs", "my_store"} & set(sys.modules)
"""


@pytest.fixture
def s3fs_environment(s3_store):
    """An environment that has TensorFlow and s3fs, and no plugin that serves s3."""
    found = with_places(tensorflow_folder(), client_libraries("store-clients"))
    return {**s3_store.environment, **found}


def test_the_configuration_alone_brings_a_client(
    run_tensorflow, s3fs_environment, s3_store, tmp_path
):
    config = tmp_path / "modular-tf.toml"
    options = f'endpoint_url = "{s3_store.endpoint}", key = {{env = "MY_KEY"}}, secret = "hidden"'
    config.write_text(f'[filesystems]\nmine = {{fsspec = "s3", {options}}}\n')
    named = {"MODULAR_TF_CONFIG": str(config), "MY_KEY": "nobody"}
    uri = "mine://fixture/configured/records"
    run_tensorflow(_READ_AND_WRITE, uri, env={**s3fs_environment, **named})


@pytest.mark.parametrize("client", sampled(["obstore", "pyarrow"], ["pyarrow"]))
def test_it_names_an_object_too(client, run_tensorflow, s3fs_environment, s3_store, tmp_path):
    config = tmp_path / "modular-tf.toml"
    config.write_text('[filesystems]\nmine = {object = "my_store:fs"}\n')
    code = f"endpoint = {s3_store.endpoint!r}\n{dedent(S3_CLIENTS[client])}"
    (tmp_path / "my_store.py").write_text(code)
    path = os.pathsep.join([s3fs_environment["PYTHONPATH"], str(tmp_path)])
    named = {"MODULAR_TF_CONFIG": str(config), "PYTHONPATH": path}
    uri = f"mine://fixture/{client}/records"
    run_tensorflow(_READ_AND_WRITE, uri, env={**s3fs_environment, **named})


def test_an_installed_client_needs_not_even_that(run_tensorflow, s3fs_environment, s3_store):
    names = {"AWS_ENDPOINT_URL": s3_store.endpoint, "MODULAR_TF_FSSPEC_FALLBACK": "1"}
    uri = "s3://fixture/fallback/records"
    run_tensorflow(_READ_AND_WRITE, uri, env={**s3fs_environment, **names})


def test_nothing_that_is_served_is_warned_of_once_with_what_brings_it(run_tensorflow):
    run_tensorflow(
        """
        import warnings
        import tensorflow
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import modular_tf.tensorflow.auto as auto
            import modular_tf.tensorflow as mtft
            mtft.register()
        said = [str(one.message) for one in caught if "modular_tf serves" in str(one.message)]
        assert auto.registration.schemes == ()
        assert len(said) == 1, said
        assert "s3: to have it: `modular-tf fetch tensorflow-io` or `pip install s3fs`" in said[0]
        try:
            mtft.register(["s3"])
        except FileNotFoundError as error:
            assert "`pip install s3fs`" in str(error), error
        else:
            raise AssertionError("s3 is served")
        """
    )
