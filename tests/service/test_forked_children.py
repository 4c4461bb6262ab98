"""What a forked child can do where its parent has used plugins."""

from __future__ import annotations

import json

FORKS = """
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
        with mtf.PluginService(plugin_paths=sys.argv[1:]) as service:
            service.load()
            with service.filesystem("ram").open("ram://x", "wb") as file:
                file.write(b"abc")
            return [works(service.device(NAME)), service.filesystem("ram").get_file_size("ram://x")]
"""

OF_THIS_PACKAGE = f"""{FORKS}
    NAME = "CPU:0"
    with mtf.PluginService() as service:
        service.load()
        service.devices()
        said = [in_child(in_new_service), in_child(lambda: works(service.device(NAME)))]
        array = service.device(NAME).put(b"abc")  # the device is in use, too
        said += [in_child(in_new_service), in_child(lambda: works(service.device(NAME)))]
        said += [in_child(lambda: in_child(in_new_service)), in_child(array.to_bytes)]
        said += [array.to_bytes().decode()]
    print(json.dumps(said))
"""

OF_SOMEBODY_ELSE = f"""{FORKS}
    NAME = "FIXTURE:0"
    with mtf.PluginService(plugin_paths=sys.argv[1:]) as service:
        service.load()
        service.devices()
        said = [in_child(in_new_service), in_child(lambda: works(service.device(NAME)))]
        works(service.device(NAME))
        said += [in_child(in_new_service), in_child(lambda: works(service.device(NAME)))]
        said += [works(service.device(NAME))]
    print(json.dumps(said))
"""


def test_a_child_uses_the_device_of_this_package_and_filesystems(run_forked):
    *children, array, parent = json.loads(run_forked(OF_THIS_PACKAGE).stdout)

    new, old = [150_000, 3], 150_000
    assert children == [new, old, new, old, new]
    assert array[0] == "ClosedError"
    assert "it belongs to the parent process, and a forked child cannot use it" in array[1]
    assert parent == "abc"


def test_a_child_is_told_what_to_do_for_the_devices_of_other_plugins(device_file, run_forked):
    *children, parent = json.loads(
        run_forked(OF_SOMEBODY_ELSE, device_file("libfixture.so")).stdout
    )

    for error, message in children:
        assert error == "ClosedError"
        assert "platform FIXTURE_CHIP was set up by the parent process" in message
        assert "'spawn' or 'forkserver'" in message
    assert len(children) == 4
    assert parent == 150_000
