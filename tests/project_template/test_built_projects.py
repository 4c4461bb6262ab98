"""What a new project builds is a plugin in order: alone, in a service, and to its own standards."""

from __future__ import annotations

import sys

import pytest

from modular_tf.check.project_template.project import project_names
from tests.project_template.building import built_library, run_tool

NAMES = {
    "filesystem": project_names("filesystem", "New-Store"),
    "device": project_names("device", "class", device_type="NEW_CHIP"),
}
ENTRY_POINTS = {"filesystem": ["TF_InitPlugin"], "device": ["SE_InitPlugin", "TF_InitKernel"]}


@pytest.mark.parametrize("names", NAMES.values(), ids=NAMES)
def test_it_shows_entry_points_alone_and_conforms_beyond_what_is_promised(names):
    library = built_library(names)
    listed = run_tool("nm", "-D", "--defined-only", "--format=posix", library, cwd=library.parent)
    assert [line.split()[0] for line in listed.splitlines()] == ENTRY_POINTS[names.kind]

    check = [sys.executable, "-m", "modular_tf", "check", library, "--level", "4"]
    run_tool(*check, cwd=library.parent)


FILESYSTEM = """
    import sys, threading
    import modular_tf as mtf

    with mtf.PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
        service.load()
        fs = service.filesystem("newstore")
        # Hosts that look for the nearest directory above would never find one here.
        fs.recursively_create_dir("newstore://host/a/b")
        with fs.open("newstore://host/a/b/file", "wb") as file:
            file.write(b"1234")
        with fs.open("newstore://host/a/b/file", "ab") as file:
            file.write(b"5678")
        fs.copy_file("newstore://host/a/b/file", "newstore://host/a/b/file")
        fs.rename_file("newstore://host/a/b/file", "newstore://host/moved")
        region = fs.new_read_only_memory_region_from_file("newstore://host/moved")
        fs.delete_file("newstore://host/moved")
        assert bytes(region.view()) == b"12345678"
        assert fs.get_matching_paths("newstore://host/*/b") == ["newstore://host/a/b"]
        assert fs.translate_name("newstore://host/./a//b/../../..") == "/"

        def write_many(name):
            for number in range(200):
                with fs.open(f"newstore://host/a/{name}{number}", "wb") as file:
                    file.write(name.encode() * number)

        writers = [threading.Thread(target=write_many, args=(name,)) for name in "wxyz"]
        [writer.start() for writer in writers]
        [writer.join() for writer in writers]
        assert len(fs.get_children("newstore://host/a")) == 801
        assert fs.stat("newstore://host/a/z199").length == 199
        left = fs.delete_recursively("newstore://host")
        assert not fs.path_exists("newstore://host"), left
    """

DEVICE = """
    import sys, threading
    import modular_tf as mtf

    with mtf.PluginService(plugin_paths=[sys.argv[1]], bundled=False) as service:
        service.load()
        device = service.device("NEW_CHIP:0")
        memory, back = device.allocate(64 << 10), bytearray(64 << 10)
        streams = [device.create_stream() for _ in range(3)]
        waited, order = threading.Event(), []
        streams[0].add_callback(waited.wait)
        streams[0].memset32(memory, 0x04030201)
        streams[1].wait_event(streams[0].record_event())
        streams[1].memcpy_dtoh(back, memory)
        streams[1].add_callback(lambda: order.append(bytes(back[:4])))
        streams[2].wait_for(streams[1])
        streams[2].add_callback(lambda: order.append("last"))
        assert order == []
        waited.set()
        streams[2].block_until_done()
        assert order == [b"\\x01\\x02\\x03\\x04", "last"]

        import array
        relu = device.op("Relu")
        results = [relu(array.array("f", range(-100, 100))) for _ in range(50)]
        expected = [max(x, 0) for x in range(-100, 100)]
        assert all(each.to_memoryview().tolist() == expected for each in results)

        def fail():
            raise RuntimeError("said the callback")

        streams[0].add_callback(fail)
        try:
            streams[0].block_until_done()
        except mtf.ModularTFError as error:
            assert "said the callback" in str(error)
        else:
            raise AssertionError("nobody heard of the failure")
        assert device.memory_usage().total == 1 << 30
        assert device.allocator_stats().bytes_in_use >= 64 << 10
    """


@pytest.mark.parametrize(
    ("kind", "code"), [("filesystem", FILESYSTEM), ("device", DEVICE)], ids=NAMES
)
def test_it_works_in_a_service(kind, code, run_python):
    run_python(code, built_library(NAMES[kind]), env={"PYTHONFAULTHANDLER": "1"})
