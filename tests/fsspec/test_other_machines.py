"""A pickled filesystem finds its plugin by distribution and version, or by path, or says so."""

from __future__ import annotations

import base64
import hashlib
import os
import shutil
from pathlib import Path

import pytest

from modular_tf.service.service import PluginService

PICKLE = """
    import pathlib, pickle, sys
    import modular_tf as mtf
    service = mtf.PluginService(bundled=False)
    service.load()
    fs = mtf.fsspec.ModularFileSystem("ram", service=service)
    assert service.schemes() == {"ram": fs.filesystem.plugin}
    pathlib.Path("blob").write_bytes(pickle.dumps(fs))
"""
READ = """
    import pickle
    fs, again = (pickle.load(open("blob", "rb")) for _ in range(2))
    assert fs.service is again.service
    fs.pipe_file("x", b"by the plugin")
    print([p.path for p in fs.service.plugins() if "ram" in p.schemes])
"""
REFUSED = """
    import pickle
    from modular_tf.errors import NotFoundError
    fs = pickle.load(open("blob", "rb"))  # libraries that unpickle in their own threads go on
    assert len(pickle.dumps(fs)) > 100
    try:
        fs.exists("x")
    except NotFoundError as error:
        assert str(pickle.loads(pickle.dumps(error))) == str(error)
        print(error)
"""


@pytest.fixture(scope="module")
def library():
    """The bytes of a plugin that serves `ram`, which are not those of the bundled one."""
    with PluginService() as service:
        service.load()
        path = next(p.path for p in service.plugins() if "ram" in p.schemes)
    return Path(path).read_bytes() + b"\0"


@pytest.fixture
def install(tmp_path, library):
    """Install the plugin into a folder like site-packages, as a version of a distribution."""

    def make(folder, version="1.0", more=b"", name="my-store"):
        site = tmp_path / folder
        file = f"{name.replace('-', '_')}/libstore.so"
        (site / file).parent.mkdir(parents=True)
        (site / file).write_bytes(library + more)
        digest = base64.urlsafe_b64encode(hashlib.sha256(library + more).digest()).rstrip(b"=")
        metadata = site / f"{name.replace('-', '_')}-{version}.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        (metadata / "RECORD").write_text(f"{file},sha256={digest.decode()},\n")
        return site

    return make


def with_site(*sites):
    places = [*map(str, sites), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(places)}


@pytest.fixture
def sent(install, run_python):
    """Pickle a filesystem on a machine that is gone then: `blob` in the working directory."""
    site = install("sender")
    run_python(PICKLE, env=with_site(site))
    shutil.rmtree(site)


def test_it_is_found_where_another_environment_has_it(sent, install, run_python):
    site = install("elsewhere")
    child = run_python(READ, env=with_site(site))

    assert child.stdout.strip() == str([str(site / "my_store" / "libstore.so")])


def test_a_machine_without_it_says_what_to_install(sent, run_python):
    message = run_python(REFUSED).stdout

    assert "libstore.so of my-store 1.0" in message
    assert "Install it there: pip install my-store==1.0" in message


def test_another_version_is_named_and_not_taken(sent, install, run_python):
    site = install("newer", version="2.0", more=b"newer")
    message = run_python(REFUSED, env=with_site(site)).stdout

    assert f"{site / 'my_store' / 'libstore.so'} of my-store 2.0" in message
    assert "pip install my-store==1.0" in message


def test_another_file_at_the_same_path_is_not_taken(sent, install, run_python):
    site = install("sender", version="2.0", more=b"newer")
    message = run_python(REFUSED, env=with_site(site)).stdout

    assert "my-store 2.0" in message
    assert "pip install my-store==1.0" in message


def test_a_well_known_package_is_installed_without_what_it_does_not_need(
    install, run_python, tmp_path
):
    site = install("sender", name="tensorflow-io", version="0.37.1")
    run_python(PICKLE, env=with_site(site))
    shutil.rmtree(site)

    assert "modular-tf fetch tensorflow-io==0.37.1" in run_python(REFUSED).stdout


def test_a_file_of_no_distribution_is_to_be_copied(run_python, tmp_path, library):
    (tmp_path / "own.so").write_bytes(library)
    run_python(PICKLE, env={"MODULAR_TF_PLUGIN_PATH": str(tmp_path / "own.so")})
    (tmp_path / "own.so").unlink()
    message = run_python(REFUSED).stdout

    assert "Put the same file on each machine" in message
    assert str(tmp_path / "own.so") in message
    assert "pip" not in message


def test_bundled_plugins_are_those_of_the_machine(run_python, tmp_path):
    run_python(PICKLE.replace("bundled=False", "bundled=True").replace("assert", "service and"))
    blob = (tmp_path / "blob").read_bytes()
    with PluginService() as service:
        service.load()
        path = next(p.path for p in service.plugins() if "ram" in p.schemes)
    there = path.encode()
    elsewhere = there.replace(b"/", b"_", 1)  # of the same length, as pickles note it
    assert there in blob
    (tmp_path / "blob").write_bytes(blob.replace(there, elsewhere))

    assert path in run_python(READ).stdout
