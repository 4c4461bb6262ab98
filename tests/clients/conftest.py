"""Steps that a child process takes with a library, and who asked the store in each."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.fixtures.clients import with_places

if TYPE_CHECKING:
    from collections.abc import Mapping

PLUGIN, ANOTHER, NOBODY = "the plugin", "another client", "nobody"

PREPARE = """
import json, os, pathlib, sys
import fsspec
import modular_tf as mtf

service = mtf.PluginService()
service.load()
mtf.fsspec.register(service, clobber=True, schemes=["s3", "ram"], warn=False)
fs = fsspec.filesystem("s3")
bucket, log = sys.argv[1], pathlib.Path(sys.argv[2])
taken = {}

def take(name, step):
    before, value, error = log.stat().st_size, None, None
    try:
        value = step()
    except Exception as raised:
        error = f"{type(raised).__name__}: {raised}"
    with log.open() as file:
        file.seek(before)
        taken[name] = (sorted(set(file.read().splitlines())), value, error)

def tell():
    print("\\n" + json.dumps(taken))

take("plugin", lambda: fs.exists(f"{bucket}/nothing"))
"""


@dataclass(frozen=True)
class Steps:
    """What became of the steps of a child, by name: who asked the store, values and errors."""

    by: Mapping[str, str]
    values: Mapping[str, Any]
    errors: Mapping[str, str]


def _read(output):
    taken = json.loads(output.splitlines()[-1])
    ours = taken.pop("plugin")[0]
    assert ours, "the plugin has asked the store nothing"
    by = {
        name: NOBODY if not agents else PLUGIN if agents == ours else ANOTHER
        for name, (agents, _, _) in taken.items()
    }
    values = {name: value for name, (_, value, error) in taken.items() if error is None}
    errors = {name: error for name, (_, _, error) in taken.items() if error is not None}
    return Steps(by, values, errors)


@pytest.fixture
def environment(clients, wild_plugins, s3_store_with_log):
    """Of a child that has the libraries, the plugins and the store."""
    store, _ = s3_store_with_log
    theirs = {"AWS_ENDPOINT_URL": store.endpoint, "AWS_ALLOW_HTTP": "true"}
    return {**store.environment, **theirs, **with_places(wild_plugins.site_dir, clients)}


@pytest.fixture
def take_steps(run_python, environment, s3_store_with_log, tmp_path):
    """Run the steps that a program takes, in a child; return what became of them."""
    store, log = s3_store_with_log
    bucket = store.base_uri.removeprefix("s3://")

    def run(program):
        script = tmp_path / "steps.py"
        script.write_text(f"{PREPARE}\n{program}\ntell()\n")
        return _read(run_python(script, bucket, log, env=environment, timeout=240).stdout)

    return run
