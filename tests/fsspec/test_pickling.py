"""Filesystems travel to other processes, where the plugin is loaded again."""

from __future__ import annotations

import multiprocessing
import pickle

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from modular_tf import errors
from modular_tf.fsspec import ModularFileSystem
from modular_tf.service.service import PluginService


def test_within_the_process_the_same_service_serves_on(service, ram, ram_path):
    ram.pipe_file(f"{ram_path}/x", b"here")
    again = pickle.loads(pickle.dumps(ram))

    assert again == ram
    assert again.service is service
    assert again.cat_file(f"{ram_path}/x") == b"here"


def test_options_travel_along(service):
    fs = ModularFileSystem("ram", service=service, auto_mkdir=True, use_listings_cache=True)
    again = pickle.loads(pickle.dumps(fs))

    assert again.auto_mkdir
    assert again.dircache.use_listings_cache


def _read(fs, path):
    return fs.cat_file(path), fs.fsid


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_another_process_loads_the_plugin_again(service, tmp_path, method):
    (tmp_path / "x").write_bytes(b"from the parent")
    fs = ModularFileSystem("file", service=service)
    with multiprocessing.get_context(method).Pool(1) as pool:
        answer = pool.apply(_read, (fs, str(tmp_path / "x")))

    assert answer == (b"from the parent", fs.fsid)


def test_in_another_process_one_service_serves_all_that_arrive(run_python, service, tmp_path):
    blob = tmp_path / "blob"
    blob.write_bytes(
        pickle.dumps([ModularFileSystem(scheme, service=service) for scheme in ("file", "file")])
    )
    run_python(
        """
        import pathlib, pickle, sys
        one, two = pickle.loads(pathlib.Path(sys.argv[1]).read_bytes())
        assert one.service is two.service
        assert one == two
        one.pipe_file("made", b"made")
        assert pathlib.Path("made").read_bytes() == b"made"
        """,
        blob,
    )


def test_a_plugin_that_is_gone_is_named(run_python, tmp_path):
    run_python(
        """
        import pickle, shutil, sys, os
        from modular_tf.fsspec import ModularFileSystem
        from modular_tf.service.service import PluginService
        with PluginService() as service:
            service.discover(); service.load()
            plugin = next(p.path for p in service.plugins() if "ram" in p.schemes)
        shutil.copy(plugin, "copy.so")
        open("copy.so", "ab").write(b"\\0")  # else it would be the bundled one
        fs = ModularFileSystem("ram", plugin=os.path.abspath("copy.so"))
        open("blob", "wb").write(pickle.dumps(fs))
        os.remove("copy.so")
        """
    )
    child = run_python("import pickle; pickle.load(open('blob', 'rb')).exists('x')", status=1)

    assert "copy.so" in child.stderr.splitlines()[-1]


def test_a_filesystem_that_only_this_process_has_says_so():
    with PluginService(bundled=False) as service:
        service.register_filesystem("mem2", MemoryFileSystem(global_store=False))
        fs = ModularFileSystem("mem2", service=service)

        with pytest.raises(errors.UnimplementedError, match=r"'mem2'.*Python object"):
            pickle.dumps(fs)


def test_classes_travel_by_name():
    from modular_tf.fsspec import filesystem_class

    assert pickle.loads(pickle.dumps(filesystem_class("s3"))) is filesystem_class("s3")


def test_json_round_trips_a_filesystem_made_from_a_plugin(service, ram_path, ram):
    plugin = next(p.path for p in service.plugins() if "ram" in p.schemes)
    fs = ModularFileSystem("ram", plugin=plugin)
    again = ModularFileSystem.from_json(fs.to_json())

    assert again == fs
    assert again.service is fs.service
