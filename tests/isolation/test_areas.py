"""The memory through which long reads and writes go between the host and a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.isolation.hostile_plugin import hostile_plugin

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_AREAS = """
    import modular_tf as mtf

    LIMIT_KIB = 1024

    def area_kib():
        found, is_area = 0, False
        for line in open("/proc/self/smaps"):
            if "-" in line.split()[0]:
                is_area = "modular_tf call" in line
            elif is_area and line.startswith("Rss:"):
                found += int(line.split()[1])
        return found
"""

# What is sent that is longer than any write, by several threads at once.
_GIVEN_BACK = (
    _AREAS
    + """
    import threading
    import time
    from modular_tf.native.ffi import lib

    LONG, THREADS = 32 << 20, 5

    with mtf.PluginService(isolation="process") as service:
        service.load()
        fs = service.filesystem("ram")

        def call():
            lib.mtf_error_free(lib.mtf_path_exists(fs.handle, b"ram://" + b"x" * LONG))

        for _ in range(2):  # what was given back is used again
            threads = [threading.Thread(target=call) for _ in range(THREADS)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            print(area_kib() > LIMIT_KIB)
            deadline = time.monotonic() + 30
            while area_kib() > LIMIT_KIB:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        data = bytes(range(256)) * (1 << 17)
        with fs.new_writable_file("ram://f") as file:
            file.append(data)
        print(fs.read_file("ram://f") == data)
"""
)

# A caller that does not know the length of a file, in a store, asks for more than it has.
_MORE_THAN_THERE_IS = (
    _AREAS
    + """
    import sys

    with mtf.PluginService(isolation="process", plugin_dirs=[sys.argv[1]]) as service:
        service.load()
        fs = service.filesystem("hostile")
        with fs.new_writable_file("hostile://h/data") as file:
            file.append(bytes(100))
        for _ in range(2):
            with fs.new_random_access_file("hostile://h/data") as reader:
                read = {len(reader.read(0, 64 << 20)) for _ in range(20)}
                print(*read, area_kib() <= LIMIT_KIB)
            print(fs.get_file_size("hostile://h/data"))
"""
)

# The process ends, and when the next one has been started there is no memory for an area. What is
# mapped counts, so the area of before is unmapped by then.
_NO_AREA_IN_THE_NEXT_PROCESS = """
    import os
    import resource
    import signal
    import time
    import modular_tf as mtf
    from modular_tf.isolation.worker import Worker
    from modular_tf.native.ffi import ffi, lib

    def limit(size):
        resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))

    def start_without_memory(worker, run):
        control = start(worker, run)
        mapped = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        limit(mapped + (4 << 20))
        return control

    long = b"ram://" + b"x" * (32 << 20)
    with mtf.PluginService(isolation="process") as service:
        service.load()
        fs = service.filesystem("ram")
        lib.mtf_error_free(lib.mtf_path_exists(fs.handle, long))
        before = next(found.pid for found in service.workers() if found.plugin == "ram_filesystem")
        os.kill(before, signal.SIGKILL)
        while os.path.exists(f"/proc/{before}/fd/0"):
            time.sleep(0.01)
        start, Worker.start = Worker.start, start_without_memory
        error = lib.mtf_path_exists(fs.handle, long)
        limit(resource.RLIM_INFINITY)  # an error with the path in it takes memory too
        Worker.start = start
        print(error.code, b"no memory of" in ffi.string(error.message))
        lib.mtf_error_free(error)
        print(fs.path_exists("ram://"))
        print([found.restarts for found in service.workers() if found.plugin == "ram_filesystem"])
"""


def test_idle_channels_give_back_the_memory_of_long_calls(run_python: PythonRunner) -> None:
    assert run_python(_GIVEN_BACK).stdout.split() == ["True"] * 3


def test_a_read_past_the_end_takes_no_memory_for_what_is_not_there(
    run_python: PythonRunner,
) -> None:
    told = run_python(_MORE_THAN_THERE_IS, hostile_plugin()).stdout.split()
    assert told == ["100", "True", "100"] * 2


def test_no_memory_in_the_next_process_is_told_and_does_not_end_that(
    run_python: PythonRunner,
) -> None:
    assert run_python(_NO_AREA_IN_THE_NEXT_PROCESS).stdout.split() == ["8", "True", "True", "[1]"]
