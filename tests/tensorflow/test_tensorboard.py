"""TensorBoard's own command shows logs of schemes that this package serves."""

from __future__ import annotations

import json
import os
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
from tests.fixtures.tensorflow import environment_of_tensorflow, installed, tensorflow_folder

pytestmark = [
    pytest.mark.xdist_group("actions in tensorflow"),
    pytest.mark.wild,
    pytest.mark.emulator,
]

_POSIX = Path(__file__).parents[2] / "contrib" / "posix_filesystem" / "src"
_MAX_START_S = 180  # it imports TensorFlow
_MAX_WAIT_S = 90
_LOSSES = [1.0, 0.5, 0.25]

_WRITE = """
scheme, folder = sys.argv[1:]
service = started([scheme])
with tf.summary.create_file_writer(folder + "/run").as_default():
    for step, loss in enumerate([1.0, 0.5, 0.25]):
        tf.summary.scalar("loss", loss, step=step)
"""


@pytest.fixture
def disk_plugin():
    """The plugin of the local disk, under a scheme that TensorFlow lacks."""
    macros = ("_GNU_SOURCE", 'MTF_POSIX_SCHEMES="mydisk"')
    objects = [compile_object(source, macros, []) for source in sorted(_POSIX.glob("*.c"))]
    options = ["-lpthread", f"-Wl,--version-script={_POSIX / 'exports.map'}"]
    return link_library("libmydisk.so", objects, options, cxx=False)


def _losses_at(url):
    """Return the scalars of TensorBoard's answer, or None where it has none yet."""
    try:
        with urllib.request.urlopen(f"{url}data/plugin/scalars/scalars?run=run&tag=loss") as reply:
            return [round(value, 6) for _, _, value in json.load(reply)]
    except urllib.error.HTTPError:
        return None


@pytest.fixture
def losses_shown(tmp_path):
    """Return what starts TensorBoard's command on a folder, and returns the scalars it shows."""

    def shown(folder, environment):
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", folder]
        command += ["--host", "127.0.0.1", "--port", "0", "--reload_interval", "1"]
        env, log = {**os.environ, **environment}, tmp_path / "log"
        ready = r"TensorBoard \S+ at (http://127\.0\.0\.1:\d+/)"
        with running_server(
            command, ready, log=log, cwd=tmp_path, env=env, limit_s=_MAX_START_S
        ) as found:
            end = time.monotonic() + _MAX_WAIT_S
            while (losses := _losses_at(found[1])) is None and time.monotonic() < end:
                time.sleep(0.2)
        assert losses is not None, log.read_text()
        return losses

    return shown


def _by_installed_client(s3_store):
    found = with_places(tensorflow_folder(), client_libraries("store-clients"))
    named = {"AWS_ENDPOINT_URL": s3_store.endpoint, "MODULAR_TF_FSSPEC_FALLBACK": "1"}
    return s3_store.uri("tensorboard-by-a-client"), {**found, **named}


def _by_client(client, s3_store, folder):
    source = f"endpoint = {s3_store.endpoint!r}\n{dedent(S3_CLIENTS[client])}"
    (folder / "my_store.py").write_text(source)
    (folder / "config.toml").write_text('[filesystems]\nmine = {object = "my_store:fs"}\n')
    places = (
        environment_of_tensorflow()["PYTHONPATH"], client_libraries("store-clients"), folder,
    )  # fmt: skip
    environment = {
        "PYTHONPATH": os.pathsep.join(map(str, places)),
        "MODULAR_TF_CONFIG": str(folder / "config.toml"),
    }
    return f"mine://fixture/tensorboard-{client}", environment


_WAYS = ["plugin", "installed client", *S3_CLIENTS]


@pytest.mark.parametrize("way", sampled(_WAYS, ["plugin"]))
def test_a_bucket_is_shown(way, run_bridge, losses_shown, wild_plugins, s3_store, tmp_path):
    if way == "plugin":
        environment = {"MODULAR_TF_PLUGIN_PATH": str(wild_plugins.io_library)}
        folder = s3_store.uri("tensorboard")
    elif way == "installed client":
        folder, environment = _by_installed_client(s3_store)
    else:
        folder, environment = _by_client(way, s3_store, tmp_path)
    environment = {**environment_of_tensorflow(), **s3_store.environment, **environment}
    run_bridge(_WRITE, folder.partition(":")[0], folder, env=environment)

    assert losses_shown(folder, environment) == _LOSSES


def test_a_plugin_is_shown_without_tensorflow(run_bridge, losses_shown, disk_plugin, tmp_path):
    environment = {"MODULAR_TF_PLUGIN_PATH": str(disk_plugin)}
    folder = f"mydisk://{tmp_path}/logs"
    run_bridge(_WRITE, "mydisk", folder, env=environment)

    assert losses_shown(folder, {**environment, **with_places(installed("tensorboard"))}) == _LOSSES


def test_a_scheme_that_nobody_serves_is_named(tmp_path):
    command = [sys.executable, "-m", "tensorboard.main", "--logdir", "nobody://x", "--port", "0"]
    env, log = {**os.environ, **with_places(installed("tensorboard"))}, tmp_path / "log"
    named = "no plugin serves 'nobody'; schemes served: "
    with running_server(command, named, log=log, cwd=tmp_path, env=env, limit_s=_MAX_START_S):
        pass
