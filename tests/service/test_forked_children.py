"""What a forked child can do where its parent has used plugins."""

from __future__ import annotations

import json

import pytest

CODE = """
    import json, os, signal, sys
    import modular_tf as mtf

    def in_child(use):
        "Return what a function returns in a forked child, or the error that it raises."
        reads, writes = os.pipe()
        child = os.fork()
        if not child:
            signal.alarm(60)
            try:
                said = use()
            except Exception as error:
                said = [type(error).__name__, str(error)]
            os.write(writes, json.dumps(said).encode())
            os._exit(0)
        os.close(writes)
        assert os.waitpid(child, 0)[1] == 0
        with open(reads, "rb") as stream:
            return json.loads(stream.read())

    def works(device):
        with device.put(b"abc" * 50_000) as array, array.copy_to(device) as copied:
            with device.create_stream() as stream, stream.record_event() as event:
                event.wait(30)
            return len(copied.to_bytes())

    def in_new_service():
        with mtf.PluginService(plugin_paths=sys.argv[2:]) as service:
            service.load()
            with service.filesystem("ram").open("ram://x", "wb") as file:
                file.write(b"abc")
            mtf.gfile.makedirs("ram://of the default service of a child")
            return [works(service.device(name)), service.filesystem("ram").get_file_size("ram://x")]

    name, said = sys.argv[1], []
    with mtf.PluginService(plugin_paths=sys.argv[2:]) as service:
        service.load()
        service.devices()
        mtf.gfile.exists("ram://x")
        for _ in range(2):  # the second time the device is in use, too
            said += [in_child(in_new_service), in_child(lambda: works(service.device(name)))]
            array = service.device(name).put(b"abc")
        said += [in_child(lambda: in_child(in_new_service)), in_child(array.to_bytes)]
        assert not mtf.gfile.exists("ram://of the default service of a child")
        print(json.dumps([*said, array.to_bytes().decode()]))
"""
NEW, OLD = [150_000, 3], 150_000


@pytest.mark.parametrize(
    ("name", "served"),
    [
        ("CPU:0", [NEW, OLD, NEW, OLD, NEW]),
        ("FIXTURE:0", []),
    ],
    ids=["of this package", "of others"],
)
def test_a_child_uses_devices_of_this_package_and_gets_advice_for_others(
    run_forked, device_file, name, served
):
    *children, array, parent = json.loads(
        run_forked(CODE, name, device_file("libfixture.so")).stdout
    )

    assert len(children) == 5
    assert children[: len(served)] == served
    for error, message in children[len(served) :]:
        assert error == "ClosedError"
        assert "platform FIXTURE_CHIP was set up by the parent process" in message
        assert "'spawn' or 'forkserver'" in message
    assert array[0] == "ClosedError"
    assert "it belongs to the parent process, and a forked child cannot use it" in array[1]
    assert parent == "abc"
