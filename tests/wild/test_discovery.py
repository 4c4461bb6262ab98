"""Both wheels are found where pip put them, without TensorFlow, and serve nine schemes."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.wild

IO, GCS = "tensorflow-io", "tensorflow-io-gcs-filesystem"
NINE = dict.fromkeys(("az", "har", "hdfs", "http", "https", "oss", "s3", "viewfs"), IO)
NINE["gs"] = GCS


@pytest.fixture
def command(run_python, wild_plugins):
    """Run the command line in an environment that has both wheels, and no TensorFlow."""

    def run(*arguments, status=0):
        environment = {"PYTHONPATH": str(wild_plugins.site_dir)}
        code = "import sys; from modular_tf.cli.main import run; sys.exit(run())"
        return run_python(code, *arguments, env=environment, status=status)

    return run


def test_list_names_both_by_distribution(command):
    plugins = json.loads(command("--json", "list").stdout)["plugins"]
    found = {plugin["name"]: plugin for plugin in plugins if plugin["source"] == "distribution"}
    assert set(found) == {IO, GCS}
    for plugin in found.values():
        assert (plugin["state"], plugin["reason"]) == ("loaded", None)
        assert plugin["kinds"] == ["filesystem"]
    schemes = {scheme: name for name, plugin in found.items() for scheme in plugin["schemes"]}
    assert schemes == NINE


def test_schemes_says_who_serves_what(command):
    schemes = json.loads(command("--json", "schemes").stdout)["schemes"]
    served = {entry["scheme"]: entry["plugin"] for entry in schemes}
    assert served.items() >= NINE.items()


def test_the_probe_alone_runs_nothing_and_knows_them(command):
    plugins = json.loads(command("--json", "list", "--no-load").stdout)["plugins"]
    states = {plugin["name"]: plugin["state"] for plugin in plugins}
    assert (states[IO], states[GCS]) == ("found", "found")


def test_tensorflow_is_neither_there_nor_imported(run_python, wild_plugins):
    run_python(
        """
        import importlib.util, sys
        import modular_tf as mtf
        with mtf.PluginService() as service:
            service.load()
            assert service.schemes()["s3"] == "tensorflow-io"
        assert importlib.util.find_spec("tensorflow") is None
        assert not {name for name in sys.modules if name.startswith("tensorflow")}
        """,
        env={"PYTHONPATH": str(wild_plugins.site_dir)},
    )


def test_the_file_on_disk_stays_as_it_was(command, wild_plugins):
    before = [path.stat().st_mtime_ns for path in (wild_plugins.io_library,)]
    content = wild_plugins.gcs_library.read_bytes()
    command("list")
    assert [path.stat().st_mtime_ns for path in (wild_plugins.io_library,)] == before
    assert wild_plugins.gcs_library.read_bytes() == content
