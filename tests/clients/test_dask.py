"""Dask's workers load the plugin for themselves, once each, wherever their machine has it."""

import os
import shutil

import pytest

from tests.fixtures.clients import with_places

pytestmark = [pytest.mark.emulator, pytest.mark.wild]

SEND = """
import os
import pathlib
import shutil
import subprocess
import sys

import fsspec
import modular_tf as mtf
from distributed import Client, LocalCluster

def read(fs, path):
    from modular_tf.fsspec import origin

    content, (plugin,) = fs.cat_file(path), [p for p in fs.service.plugins() if "s3" in p.schemes]
    name = pathlib.Path(plugin.path).name
    mapped = {line.split()[4] for line in open("/proc/self/maps") if name in line}
    return content, plugin.path, len(origin._started), len(mapped), "tensorflow" in sys.modules

def start(cluster, name, site):
    return subprocess.Popen(
        [sys.executable, "-m", "distributed.cli.dask_worker", cluster.scheduler_address]
        + ["--name", name, "--nthreads", "1", "--no-nanny", "--no-dashboard"],
        env={**os.environ, "PYTHONPATH": site},
        stderr=subprocess.DEVNULL,
    )

def main(bucket, here, sites):
    with mtf.PluginService() as service:
        service.load()
        fs = mtf.fsspec.ModularFileSystem("s3", service=service)
        fs.pipe_file(f"{bucket}/dask/one", b"one")
        shutil.rmtree(here)  # the other machines have no such folder
        cluster = LocalCluster(n_workers=0, dashboard_address=None)
        with cluster, Client(cluster) as client:
            workers = [start(cluster, name, site) for name, site in sites.items()]
            try:
                client.wait_for_workers(len(workers), timeout=100)
                for name in sites:
                    try:
                        for _ in range(2):
                            path = f"{bucket}/dask/one"
                            sent = client.submit(read, fs, path, workers=[name], pure=False)
                            answer = sent.result()
                        print(name, *answer)
                    except FileNotFoundError as error:
                        print(name, type(error).__name__, error)
            finally:
                for worker in workers:
                    worker.terminate()
                    worker.wait()

if __name__ == "__main__":
    main(*sys.argv[1:3], dict(zip(sys.argv[3::2], sys.argv[4::2])))
"""


@pytest.fixture
def site(wild_plugins, tmp_path):
    """Make folders like site-packages, each with the plugin's distribution in it."""

    def make(name):
        folder = tmp_path / name
        library = wild_plugins.io_library.relative_to(wild_plugins.site_dir)
        (folder / library).parent.mkdir(parents=True)
        shutil.copy(wild_plugins.io_library, folder / library)
        for metadata in wild_plugins.site_dir.glob("tensorflow_io-*.dist-info"):
            shutil.copytree(metadata, folder / metadata.name)
        return folder

    return make


def test_a_worker_loads_the_plugin_once_from_elsewhere_or_says_what_to_install(
    run_python, clients, s3_store_with_log, site, tmp_path
):
    store, _ = s3_store_with_log
    here, elsewhere = site("here"), site("elsewhere")
    without = tmp_path / "without"
    without.mkdir()
    program = tmp_path / "send.py"
    program.write_text(SEND)
    places = {
        name: with_places(folder, clients)["PYTHONPATH"]
        for name, folder in {"elsewhere": elsewhere, "without": without}.items()
    }

    child = run_python(
        program,
        store.base_uri.removeprefix("s3://"),
        here,
        *(word for pair in places.items() for word in pair),
        env={**store.environment, **with_places(here, clients)},
        timeout=280,
    )
    answers = dict(line.partition(" ")[::2] for line in child.stdout.splitlines())
    assert answers["elsewhere"].startswith("b'one' ")
    assert f"{elsewhere}{os.sep}tensorflow_io" in answers["elsewhere"]
    assert answers["elsewhere"].endswith(" 1 1 False")  # services, libraries, TensorFlow
    assert answers["without"].startswith("NotFoundError ")
    assert "libtensorflow_io_plugins.so of tensorflow-io 0.37.1, which" in answers["without"]
    assert "modular-tf fetch tensorflow-io==0.37.1" in answers["without"]
