"""TensorBoard's own command shows logs of schemes that this package serves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from textwrap import dedent

import pytest

from tests.fixtures.clients import S3_CLIENTS, client_libraries, with_places
from tests.fixtures.compiler import compile_object, link_library
from tests.fixtures.matrices import sampled
from tests.fixtures.process_group import running_server
from tests.fixtures.tensorflow import installed, tensorflow_folder

pytestmark = [pytest.mark.xdist_group("tensorflow")]

_POSIX = Path(__file__).parents[2] / "contrib" / "posix_filesystem" / "src"
_MAX_START_S = 180  # it imports TensorFlow
_MAX_WAIT_S = 90
_LOSSES = [1.0, 0.5, 0.25]

_WRITE = """
import sys
import tensorflow as tf
import modular_tf as mtf
import modular_tf.tensorflow as mtft

service = mtf.PluginService()
service.load()
scheme, folder = sys.argv[1:]
mtft.register([scheme], service=service)
with tf.summary.create_file_writer(folder + "/run").as_default():
    for step, loss in enumerate([1.0, 0.5, 0.25]):
        tf.summary.scalar("loss", loss, step=step)
"""


@pytest.fixture(scope="session")
def disk_plugin():
    """The plugin of the local disk, under a scheme that TensorFlow lacks."""
    macros = ("_GNU_SOURCE", 'MTF_POSIX_SCHEMES="mydisk"')
    objects = [compile_object(source, macros, []) for source in sorted(_POSIX.glob("*.c"))]
    options = ["-lpthread", f"-Wl,--version-script={_POSIX / 'exports.map'}"]
    return link_library("libmydisk.so", objects, options, cxx=False)


def _ask(url):
    """Return TensorBoard's answer, or None where it has none yet."""
    try:
        with urllib.request.urlopen(url) as reply:
            return json.load(reply)
    except urllib.error.HTTPError:
        return None


def _losses_shown(folder, environment, log, *options):
    """Start TensorBoard's command on a folder, and return the scalars that it answers over HTTP."""
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", folder, *options]
    command += ["--host", "127.0.0.1", "--port", "0", "--reload_interval", "1"]
    env = {**os.environ, **environment}
    ready = r"TensorBoard \S+ at (http://127\.0\.0\.1:\d+/)"
    start = running_server(command, ready, log=log, cwd=log.parent, env=env, limit_s=_MAX_START_S)
    with start as found:
        url = f"{found[1]}data/plugin/scalars/scalars?run=run&tag=loss"
        end = time.monotonic() + _MAX_WAIT_S
        while (points := _ask(url)) is None and time.monotonic() < end:
            time.sleep(0.2)
    assert points is not None, log.read_text()
    return [round(value, 6) for _, _, value in points]


def test_shows_a_plugin_of_ours(run_python, tensorflow_environment, disk_plugin, tmp_path):
    environment = {**tensorflow_environment, "MODULAR_TF_PLUGIN_PATH": str(disk_plugin)}
    folder = f"mydisk://{tmp_path}/logs"
    run_python(_WRITE, "mydisk", folder, env=environment)

    assert _losses_shown(folder, environment, tmp_path / "log") == _LOSSES


@pytest.mark.wild
@pytest.mark.emulator
def test_shows_a_bucket(run_python, tensorflow_environment, wild_plugins, s3_store, tmp_path):
    environment = {**tensorflow_environment, **s3_store.environment}
    environment["MODULAR_TF_PLUGIN_PATH"] = str(wild_plugins.io_library)
    folder = s3_store.uri("tensorboard")
    run_python(_WRITE, "s3", folder, env=environment)

    assert _losses_shown(folder, environment, tmp_path / "log") == _LOSSES


@pytest.mark.emulator
def test_shows_a_bucket_by_an_installed_client(
    run_python, tensorflow_environment, s3_store, tmp_path
):
    environment = {**tensorflow_environment, **s3_store.environment}
    environment |= with_places(tensorflow_folder(), client_libraries("store-clients"))
    environment |= {"AWS_ENDPOINT_URL": s3_store.endpoint, "MODULAR_TF_FSSPEC_FALLBACK": "1"}
    folder = s3_store.uri("tensorboard-by-a-client")
    run_python(_WRITE, "s3", folder, env=environment)

    assert _losses_shown(folder, environment, tmp_path / "log") == _LOSSES


@pytest.mark.emulator
@pytest.mark.parametrize("client", sampled(S3_CLIENTS, ["obstore", "pyarrow"]))
def test_shows_a_bucket_by_a_client(run_python, tensorflow_environment, client, s3_store, tmp_path):
    source = f"endpoint = {s3_store.endpoint!r}\n{dedent(S3_CLIENTS[client])}"
    (tmp_path / "my_store.py").write_text(source)
    (tmp_path / "config.toml").write_text('[filesystems]\nmine = {object = "my_store:fs"}\n')
    places = (tensorflow_environment["PYTHONPATH"], client_libraries("store-clients"), tmp_path)
    environment = {
        **tensorflow_environment,
        **s3_store.environment,
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "MODULAR_TF_CONFIG": str(tmp_path / "config.toml"),
    }
    folder = f"mine://fixture/tensorboard-{client}"
    run_python(_WRITE, "mine", folder, env=environment)

    assert _losses_shown(folder, environment, tmp_path / "log") == _LOSSES


@pytest.fixture(scope="session")
def tensorboard_alone():
    """A folder with TensorBoard and without TensorFlow."""
    return installed("tensorboard")


def test_shows_them_without_tensorflow(
    run_python, tensorflow_environment, tensorboard_alone, disk_plugin, tmp_path
):
    environment = {**tensorflow_environment, "MODULAR_TF_PLUGIN_PATH": str(disk_plugin)}
    folder = f"mydisk://{tmp_path}/logs"
    run_python(_WRITE, "mydisk", folder, env=environment)
    path = os.pathsep.join(filter(None, [str(tensorboard_alone), os.environ.get("PYTHONPATH")]))

    alone = {**environment, "PYTHONPATH": path}
    assert _losses_shown(folder, alone, tmp_path / "log") == _LOSSES


def test_a_scheme_that_nobody_serves_is_named(tensorflow_environment, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "tensorboard.main", "--logdir", "nobody://x", "--port", "0"],
        env={**os.environ, **tensorflow_environment},
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        timeout=240,
    )
    assert done.returncode != 0
    assert "no plugin serves 'nobody'; schemes served: " in done.stderr
