"""What TensorFlow's users do, on schemes of every kind that this package serves."""

from __future__ import annotations

import json
import os
from pathlib import Path
from textwrap import dedent

import pytest

from tests.fixtures.clients import S3_CLIENTS, client_libraries
from tests.fixtures.matrices import BEYOND_THE_SAMPLE, sampled
from tests.fixtures.tensorflow import environment_of_tensorflow
from tests.tensorflow import action_tables
from tests.tensorflow.action_list import DONE

pytestmark = [
    pytest.mark.xdist_group("actions in tensorflow"),
    pytest.mark.wild,
    pytest.mark.emulator,
]

# What no web server can do; the shards of a dataset are listed.
NEEDS_LISTING = {"listing", "dataset"}
# What a client of a store cannot do, and the error says so.
CANNOT = {client: {"gfile_append"} for client in ("obstore.fsspec", "pyarrow.by.fsspec")}
FOLDER = Path(__file__).parent

_SERVICE = "service = mtf.PluginService(); service.load()"
_SETUPS = {
    "a plugin": f"{_SERVICE}; mtft.register({{'mine': 'ram'}}, service=service)",
    "local files": f"{_SERVICE}; mtft.register({{'mine': 'file'}}, service=service)",
    "a plugin with a limit of time": """
service = mtf.PluginService(call_timeout_s=60)
service.load()
mtft.register({'mine': 'ram'}, service=service)
""",
    "fsspec's memory": f"""
import fsspec
{_SERVICE}
mtft.register_filesystem("mine", fsspec.filesystem("memory"), service=service)
""",
}


@pytest.fixture
def perform(run_tensorflow):
    """Return what performs the actions of a program; it returns what that reports of them."""

    def run(program, *arguments, env=None):
        done = run_tensorflow(FOLDER / program, *arguments, env=env)
        return json.loads(done.stdout.splitlines()[-1])

    return run


def _failed(found):
    return {name for name, how in found.items() if how != DONE}


def _lost(came):
    """Return what works on no scheme: Keras 2 gives h5py the URI as a path."""
    return {"keras"} if came["version"] in {"2.12.1", "2.15.1"} else set()


def _compare_with_the_table(way, came):
    """Compare the outcomes with a column of the documents, but for what fails in any way."""
    lost = dict.fromkeys(_lost(came), DONE)
    action_tables.compare("actions.py", way, {**came["found"], **lost})


@pytest.mark.parametrize("program", ["actions.py", "reading_actions.py"])
def test_the_tables_of_the_documents_have_every_action(program):
    _, *lines = action_tables.rows(program)

    assert [line[0] for line in lines] == list(action_tables.titles(program).values())


@pytest.mark.parametrize("kind", sampled(_SETUPS, ["fsspec's memory"]))
def test_all_actions_work_on(kind, perform, tmp_path):
    came = perform("actions.py", _SETUPS[kind], f"mine://{tmp_path}/top")

    assert _failed(came["found"]) == _lost(came), came
    assert len(came["found"]) > 15
    if kind == "fsspec's memory":
        _compare_with_the_table(kind, came)


_OF_STORES = {"s3": ("s3_store", "s3"), "az": ("azure_store", "az"), "gs": ("gcs_store", "gs2")}
_LOAD_STORE = """
import os
service = mtf.PluginService(plugin_paths=[os.environ["WILD_PLUGIN"]])
service.load()
mtft.register({"%s": "%s"}, service=service)
"""


@pytest.mark.parametrize("scheme", sampled(_OF_STORES, ["s3"]))
def test_all_actions_work_on_the_store(scheme, perform, wild_plugins, request):
    fixture, name = _OF_STORES[scheme]
    store = request.getfixturevalue(fixture)
    library = wild_plugins.gcs_library if scheme == "gs" else wild_plugins.io_library
    root = f"{store.base_uri}/{scheme}-in-tensorflow".replace(scheme, name, 1)

    env = {**store.environment, "WILD_PLUGIN": str(library)}
    came = perform("actions.py", _LOAD_STORE % (name, scheme), root, env=env)

    assert _failed(came["found"]) == _lost(came), came
    if scheme == "s3":
        _compare_with_the_table("tensorflow-io's plugin", came)


@BEYOND_THE_SAMPLE
@pytest.mark.parametrize("client", S3_CLIENTS)
def test_all_actions_work_on_a_client(client, perform, s3_store):
    places = [environment_of_tensorflow()["PYTHONPATH"], str(client_libraries("store-clients"))]
    setup = (
        f"endpoint = {s3_store.endpoint!r}\n{dedent(S3_CLIENTS[client])}\n{_SERVICE}\n"
        "mtft.register_filesystem('mine', fs, service=service)"
    )
    env = {**s3_store.environment, "PYTHONPATH": os.pathsep.join(places)}

    came = perform("actions.py", setup, f"mine://fixture/{client}-in-tensorflow", env=env)

    assert _failed(came["found"]) == _lost(came) | CANNOT.get(client, set()), came
    if client in action_tables.head("actions.py"):
        _compare_with_the_table(client, came)


_ZIP = """
import os, zipfile
from fsspec.implementations.zip import ZipFileSystem
archive = folder + ".zip"
with zipfile.ZipFile(archive, "w") as target:
    for top, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(top, name)
            target.write(path, os.path.relpath(path, folder))
service = mtf.PluginService()
service.load()
mtft.register_filesystem("zipped", ZipFileSystem(archive), service=service)
"""


def test_what_is_read_comes_from_an_archive_too(perform, tmp_path):
    (tmp_path / "files").mkdir()

    found = perform("reading_actions.py", _ZIP, tmp_path / "files", "zipped://")

    action_tables.compare("reading_actions.py", "zip archive of fsspec", found)


def test_what_is_read_comes_from_a_web_server_too(perform, wild_plugins, http_store):
    folder = http_store.folder / "files"
    folder.mkdir()
    env = {**http_store.environment, "WILD_PLUGIN": str(wild_plugins.io_library)}
    setup = _LOAD_STORE % ("http", "http")

    found = perform("reading_actions.py", setup, folder, f"{http_store.base_uri}/files", env=env)

    assert _failed(found) == NEEDS_LISTING, found
    action_tables.compare("reading_actions.py", "web server by tensorflow-io", found)
