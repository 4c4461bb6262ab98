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

    def run(*arguments):
        code = """
            import importlib.util, sys
            from modular_tf.cli.main import run
            status = run()
            assert importlib.util.find_spec("tensorflow") is None
            assert not {name for name in sys.modules if name.startswith("tensorflow")}
            sys.exit(status)
        """
        environment = {"PYTHONPATH": str(wild_plugins.site_dir)}
        return json.loads(run_python(code, "--json", *arguments, env=environment).stdout)

    return run


def test_both_are_listed_by_distribution_and_stay_as_they_were(command, wild_plugins):
    files = (wild_plugins.io_library, wild_plugins.gcs_library)
    before = [(path.stat().st_mtime_ns, path.stat().st_size) for path in files]
    plugins = command("list")["plugins"]
    found = {plugin["name"]: plugin for plugin in plugins if plugin["source"] == "distribution"}

    assert set(found) == {IO, GCS}
    for plugin in found.values():
        assert (plugin["state"], plugin["reason"]) == ("loaded", None)
        assert plugin["kinds"] == ["filesystem"]
    schemes = {scheme: name for name, plugin in found.items() for scheme in plugin["schemes"]}
    assert schemes == NINE
    assert [(path.stat().st_mtime_ns, path.stat().st_size) for path in files] == before
