"""The memory through which long reads and writes go between the host and a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.isolation.hostile_plugin import hostile_plugin

if TYPE_CHECKING:
    from pathlib import Path

    from tests.fixtures.children import PythonRunner

_AREAS = """
    import time
    import modular_tf as mtf

    LIMIT_KIB = 1024

    def area_kib(field="Rss"):
        found, is_area = 0, False
        for line in open("/proc/self/smaps"):
            if "-" in line.split()[0]:
                is_area = "modular_tf call" in line
            elif is_area and line.startswith(f"{field}:"):
                found += int(line.split()[1])
        return found

    def wait_until_empty():
        end = time.monotonic() + 30
        while area_kib() > LIMIT_KIB and time.monotonic() < end:
            time.sleep(0.05)
"""

_MEMORY = (
    _AREAS
    + """
    service = mtf.PluginService(isolation="process")
    service.load()
    fs = service.filesystem("ram")
    data = bytes(range(256)) * (1 << 15)
    for _ in range(2):  # what was given back is used again
        with fs.new_writable_file("ram://f") as file:
            file.append(data)
        used = area_kib()
        wait_until_empty()
        print(used >= len(data) >> 10, area_kib() <= LIMIT_KIB)
        assert fs.read_file("ram://f") == data
    service.close()
"""
)

_SHORT_AFTER_LONG = (
    _AREAS
    + """
    with mtf.PluginService(isolation="process") as service:
        service.load()
        with service.filesystem("ram").new_writable_file("ram://f") as file:
            file.append(bytes(8 << 20))
            wait_until_empty()
            file.append(bytes(20_000))
            print(area_kib() <= LIMIT_KIB)
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

# A kernel that makes huge pages of shared memory does so in an area too, again after a pause. At
# times it has none, for either.
_HUGE_PAGES = (
    _AREAS
    + """
    import mmap
    import os

    SIZE, COLLAPSE = 4 << 20, 25

    def is_made_by_the_kernel():
        file = os.memfd_create("tried")
        os.ftruncate(file, SIZE)
        memory = mmap.mmap(file, SIZE)
        os.close(file)
        for start in range(0, SIZE, 4096):
            memory[start] = 1
        try:
            memory.madvise(COLLAPSE)
        except OSError:
            return False
        return True

    service = mtf.PluginService(isolation="process")
    service.load()
    fs = service.filesystem("ram")
    data = os.urandom(SIZE)
    found, made = [], 0
    end = time.monotonic() + 30
    while found.count(SIZE >> 10) < 2 and time.monotonic() < end:
        with fs.new_writable_file("ram://f") as file:
            file.append(data)
        found.append(area_kib("ShmemPmdMapped"))
        made += is_made_by_the_kernel()
        assert fs.read_file("ram://f") == data
        wait_until_empty()
    print(found.count(SIZE >> 10) == 2 or made == 0, found, made)
    service.close()
"""
)

# Pauses end while a worker gives memory back, which it does half a second after a call.
_PAUSES = """
    import random
    import threading
    import time
    import modular_tf as mtf

    service = mtf.PluginService(isolation="process")
    service.load()
    fs = service.filesystem("ram")
    wrong = []

    def work(number):
        dice = random.Random(number)
        uri = f"ram://f{number}"
        for turn in range(8):
            data = dice.randbytes(dice.choice((100, 40_000, 3 << 20)))
            with fs.new_writable_file(uri) as file:
                file.append(data)
            if fs.read_file(uri) != data:
                wrong.append((number, turn))
            time.sleep(0.5 + dice.uniform(-0.002, 0.002))

    threads = [threading.Thread(target=work, args=(number,)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(wrong)
    service.close()
"""

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

# A read that is long enough for two channels, where there is no descriptor for the second one.
_NO_SECOND_CHANNEL = """
    import os
    import resource
    import sys
    import modular_tf as mtf

    with mtf.PluginService(isolation="process") as service:
        service.load()
        data = os.urandom(5 << 20)
        with open(sys.argv[1], "wb") as file:
            file.write(data)
        fs = service.filesystem("")
        with fs.new_random_access_file(sys.argv[1]) as reader:
            reader.read(0, 3 << 19)  # so that there is an area
            free, most = os.dup(0), resource.getrlimit(resource.RLIMIT_NOFILE)
            os.close(free)
            resource.setrlimit(resource.RLIMIT_NOFILE, (free, most[1]))
            read = reader.read(0, len(data))
            resource.setrlimit(resource.RLIMIT_NOFILE, most)
        print(read == data)
"""


def test_a_worker_gives_memory_back_that_no_call_uses(run_python: PythonRunner) -> None:
    assert run_python(_MEMORY).stdout == "True True\nTrue True\n"


def test_a_short_call_takes_no_huge_page(run_python: PythonRunner) -> None:
    assert run_python(_SHORT_AFTER_LONG).stdout == "True\n"


def test_a_read_behind_the_end_takes_no_memory_for_what_is_not_there(
    run_python: PythonRunner,
) -> None:
    told = run_python(_MORE_THAN_THERE_IS, hostile_plugin()).stdout.split()
    assert told == ["100", "True", "100"] * 2


def test_memory_of_long_calls_comes_in_huge_pages(run_python: PythonRunner) -> None:
    told = run_python(_HUGE_PAGES).stdout
    assert told.startswith("True "), told


def test_memory_is_given_back_between_calls_alone(run_python: PythonRunner) -> None:
    assert run_python(_PAUSES).stdout == "[]\n"


def test_no_memory_in_the_next_process_is_told_and_does_not_end_that(
    run_python: PythonRunner,
) -> None:
    assert run_python(_NO_AREA_IN_THE_NEXT_PROCESS).stdout.split() == ["8", "True", "True", "[1]"]


def test_a_long_read_needs_no_second_channel(run_python: PythonRunner, tmp_path: Path) -> None:
    assert run_python(_NO_SECOND_CHANNEL, tmp_path / "file").stdout.split() == ["True"]
