"""Dask's workers load the plugin for themselves, once each, wherever their machine has it."""

import os
import shutil

import pytest

from tests.fixtures.clients import with_places

pytestmark = [pytest.mark.emulator, pytest.mark.wild]

READ = """
import sys

import dask.dataframe as dd
import fsspec
import modular_tf as mtf
import pandas as pd
from distributed import Client, LocalCluster

def what_is_loaded():
    import os
    from modular_tf.fsspec import origin
    services = [started.loaded for started in origin._started.values()]
    mapped = {line.split()[4] for line in open("/proc/self/maps") if sys.argv[2] in line}
    return os.getpid(), len(services), len(mapped), "tensorflow" in sys.modules

def main(bucket):
    with mtf.PluginService() as service:
        service.load()
        mtf.fsspec.register(service, clobber=True, schemes=["s3"], warn=False)
        fs = fsspec.filesystem("s3")
        frame = pd.DataFrame({"n": range(1000), "part": [i % 4 for i in range(1000)]})
        frame.to_parquet(f"{bucket}/dask/sent", filesystem=fs, partition_cols=["part"])
        cluster = LocalCluster(
            n_workers=2, threads_per_worker=2, processes=True, dashboard_address=None
        )
        with cluster, Client(cluster) as client:
            sent = dd.read_parquet(f"s3://{bucket}/dask/sent")
            assert len(sent) == 1000
            assert sent.npartitions == 4
            assert sent.n.sum().compute() == 499500
            sent.to_parquet(f"s3://{bucket}/dask/made")
            assert len(pd.read_parquet(f"{bucket}/dask/made", filesystem=fs)) == 1000
            loaded = client.run(what_is_loaded).values()
            assert len({process for process, *_ in loaded}) == 2
            assert [others for _, *others in loaded] == [[1, 1, False]] * 2, loaded

if __name__ == "__main__":
    main(sys.argv[1])
"""

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
    return fs.cat_file(path), [p.path for p in fs.service.plugins() if "s3" in p.schemes]

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
                        path = f"{bucket}/dask/one"
                        sent = client.submit(read, fs, path, workers=[name], pure=False)
                        print(name, *sent.result())
                    except FileNotFoundError as error:
                        print(name, type(error).__name__, error)
            finally:
                for worker in workers:
                    worker.terminate()
                    worker.wait()

if __name__ == "__main__":
    main(*sys.argv[1:3], dict(zip(sys.argv[3::2], sys.argv[4::2])))
"""


def test_each_worker_loads_the_plugin_once(
    run_python, environment, s3_store_with_log, wild_plugins, tmp_path
):
    store, _ = s3_store_with_log
    program = tmp_path / "read.py"
    program.write_text(READ)

    bucket = store.base_uri.removeprefix("s3://")
    run_python(program, bucket, wild_plugins.io_library.name, env=environment, timeout=280)


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


def test_a_worker_finds_the_plugin_elsewhere_or_says_what_to_install(
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
    assert answers["without"].startswith("NotFoundError ")
    assert "libtensorflow_io_plugins.so of tensorflow-io 0.37.1, which" in answers["without"]
    assert "modular-tf fetch tensorflow-io==0.37.1" in answers["without"]
