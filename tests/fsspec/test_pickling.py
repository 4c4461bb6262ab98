"""Filesystems travel to other processes and machines, where the plugin is found and loaded again.

It is found by distribution and version, or by path; where it is missing, the error says so.
"""

from __future__ import annotations

import base64
import hashlib
import multiprocessing
import os
import pickle
import shutil
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem, filesystem_class
from modular_tf.service.service import PluginService
from tests.fixtures.forked_children import in_a_fork

# ---- within the process ----


def ram_library(service):
    return next(record.path for record in service.plugins() if "ram" in record.schemes)


def test_options_and_classes_travel_along(service):
    fs = ModularFileSystem("ram", service=service, auto_mkdir=True, use_listings_cache=True)
    again = pickle.loads(pickle.dumps(fs))

    assert again.auto_mkdir
    assert again.dircache.use_listings_cache
    assert pickle.loads(pickle.dumps(filesystem_class("s3"))) is filesystem_class("s3")


def test_a_filesystem_that_only_this_process_has_says_so():
    with PluginService(bundled=False) as service:
        service.register_filesystem("mem2", MemoryFileSystem(global_store=False))
        fs = ModularFileSystem("mem2", service=service)

        with pytest.raises(errors.UnimplementedError, match=r"'mem2'.*Python object"):
            pickle.dumps(fs)


def test_json_round_trips_a_filesystem_made_from_a_plugin(service):
    fs = ModularFileSystem("ram", plugin=ram_library(service))
    again = ModularFileSystem.from_json(fs.to_json())

    assert again == fs
    assert again.service is fs.service


# ---- in other processes ----


def read(fs, path):
    return fs.cat_file(path), fs.fsid


def test_another_process_loads_the_plugin_again(local, tmp_path):
    (tmp_path / "x").write_bytes(b"from the parent")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        answer = pool.apply(read, (local, str(tmp_path / "x")))

    assert answer == (b"from the parent", local.fsid)


@in_a_fork
def open_two():
    one, two = pickle.loads(Path("blob").read_bytes())
    assert one.service is two.service
    assert one == two
    one.pipe_file("made", b"made")
    assert Path("made").read_bytes() == b"made"


def test_in_another_process_one_service_serves_all_that_arrive(run_forked, service, tmp_path):
    both = [ModularFileSystem(scheme, service=service) for scheme in ("file", "file")]
    (tmp_path / "blob").write_bytes(pickle.dumps(both))
    open_two(run_forked)


# ---- on other machines ----


def pickle_one():
    service = PluginService(bundled=False)
    service.load()
    fs = ModularFileSystem("ram", service=service)
    assert service.schemes() == {"ram": fs.filesystem.plugin}
    Path("blob").write_bytes(pickle.dumps(fs))


def use():
    fs, again = (pickle.loads(Path("blob").read_bytes()) for _ in range(2))
    assert fs.service is again.service
    fs.pipe_file("x", b"by the plugin")
    print([p.path for p in fs.service.plugins() if "ram" in p.schemes])


def be_refused():
    # Here it is no error: libraries that unpickle in their own threads go on.
    fs = pickle.loads(Path("blob").read_bytes())
    assert len(pickle.dumps(fs)) > 100
    with pytest.raises(errors.NotFoundError) as caught:
        fs.exists("x")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    print(caught.value)


@pytest.fixture
def run_with(run_forked):
    """Run a function of this module where some folders are like site-packages."""

    def run(function, *sites, **variables):
        code = f"import sys; sys.path[:0] = {list(map(str, sites))!r}\n"
        code += f"from {__name__} import {function.__name__} as work; work()"
        return run_forked(code, env=variables).stdout.strip()

    return run


@pytest.fixture(scope="module")
def library(service):
    """The bytes of a plugin that serves `ram`, which are not those of the bundled one."""
    return Path(ram_library(service)).read_bytes() + b"\0"


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


@pytest.fixture
def sent(install, run_with):
    """Pickle a filesystem on a machine that is gone then: `blob` in the working directory."""

    def send(**distribution):
        site = install("sender", **distribution)
        run_with(pickle_one, site)
        shutil.rmtree(site)

    return send


def test_it_is_found_where_another_environment_has_it(sent, install, run_with):
    sent()
    site = install("elsewhere")

    assert run_with(use, site) == str([str(site / "my_store" / "libstore.so")])


@pytest.mark.parametrize("folder", [None, "newer", "sender"])
def test_a_machine_without_it_says_what_to_install(folder, sent, install, run_with):
    """Another version is named and not taken, nor is another file at the same path."""
    sent()
    sites = [] if folder is None else [install(folder, version="2.0", more=b"newer")]
    message = run_with(be_refused, *sites)

    assert "Install it there: pip install my-store==1.0" in message
    assert ("libstore.so of my-store 1.0" if folder is None else "my-store 2.0") in message
    if folder == "newer":
        assert f"{sites[0] / 'my_store' / 'libstore.so'} of my-store 2.0" in message


def test_a_well_known_package_is_installed_without_what_it_does_not_need(sent, run_with):
    sent(name="tensorflow-io", version="0.37.1")

    assert "modular-tf fetch tensorflow-io==0.37.1" in run_with(be_refused)


def test_a_file_of_no_distribution_is_to_be_copied(run_with, tmp_path, library):
    (tmp_path / "own.so").write_bytes(library)
    run_with(pickle_one, MODULAR_TF_PLUGIN_PATH=str(tmp_path / "own.so"))
    (tmp_path / "own.so").unlink()
    message = run_with(be_refused)

    assert "Put the same file on each machine" in message
    assert str(tmp_path / "own.so") in message
    assert "pip" not in message


def test_bundled_plugins_are_those_of_the_machine(run_with, service, tmp_path):
    blob, path = pickle.dumps(ModularFileSystem("ram", service=service)), ram_library(service)
    elsewhere = path.replace(os.sep, "_", 1)  # of the same length, as pickles note it
    assert path.encode() in blob
    (tmp_path / "blob").write_bytes(blob.replace(path.encode(), elsewhere.encode()))

    assert path in run_with(use)
