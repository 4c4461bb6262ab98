"""The memory and the descriptors of the channels between the host and a worker."""

from __future__ import annotations

from tests.isolation.hostile_plugin import hostile_plugin

# What is sent that is longer than any write, by several threads at once.
_LONG_CALLS = """
    import sys
    import threading
    import modular_tf as mtf
    from modular_tf.native.ffi import lib
    from tests.isolation.conftest import wait_until

    LIMIT_KIB, LONG, THREADS = 1024, 8 << 20, 3

    def area_kib():
        found, is_area = 0, False
        for line in open("/proc/self/smaps"):
            if "-" in line.split()[0]:
                is_area = "modular_tf call" in line
            elif is_area and line.startswith("Rss:"):
                found += int(line.split()[1])
        return found

    with mtf.PluginService(isolation="process", plugin_paths=[sys.argv[1]]) as service:
        service.load()
        # A caller that does not know the length of a file, in a store, asks for more than it has.
        hostile = service.filesystem("hostile")
        with hostile.new_writable_file("hostile://h/data") as file:
            file.append(bytes(100))
        for _ in range(2):
            with hostile.new_random_access_file("hostile://h/data") as reader:
                read = {len(reader.read(0, 64 << 20)) for _ in range(5)}
                print(*read, area_kib() <= LIMIT_KIB)
            print(hostile.get_file_size("hostile://h/data"))

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
            wait_until(lambda: area_kib() <= LIMIT_KIB)
        data = bytes(range(256)) * (1 << 15)
        with fs.new_writable_file("ram://f") as file:
            file.append(data)
        print(fs.read_file("ram://f") == data)
"""

# The process ends, and when the next one has been started there is no memory for an area. What is
# mapped counts, so the area of before is unmapped by then.
_NO_AREA_IN_THE_NEXT_PROCESS = """
    import resource
    import modular_tf as mtf
    from modular_tf.isolation.worker import Worker
    from modular_tf.native.ffi import ffi, lib
    from tests.isolation.conftest import end_worker, record_of

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
        end_worker(service, "ram_filesystem")
        start, Worker.start = Worker.start, start_without_memory
        error = lib.mtf_path_exists(fs.handle, long)
        limit(resource.RLIM_INFINITY)  # an error with the path in it takes memory too
        Worker.start = start
        print(error.code, b"no memory of" in ffi.string(error.message))
        lib.mtf_error_free(error)
        print(fs.path_exists("ram://"), record_of(service, "ram_filesystem").restarts)
"""

# The server of a worker in a thread, whose next descriptors have the numbers `low` and `high`.
_WITHOUT_DESCRIPTORS = """
    import contextlib
    import os
    import resource
    import socket
    import threading
    from modular_tf.native.ffi import ffi, lib

    control, served = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    file = os.open("/dev/null", os.O_RDONLY)
    low, high = os.dup(file), os.dup(file)
    channels = [socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET) for _ in range(2)]
    os.close(low)
    os.close(high)

    def give(own, given):
        own.send(b"no request")
        socket.send_fds(control, [b"c"], [given.fileno()])
        given.close()
        with contextlib.suppress(ConnectionResetError):
            own.recv(1)  # the end of the channel

    serve = (served.fileno(), ffi.NULL, 0)
    threading.Thread(target=lib.mtf_worker_serve, args=serve, daemon=True).start()
    give(*channels[0])
    os.dup2(file, high)  # what the plugin has opened meanwhile
    while os.dup(file) <= high:
        pass
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (high + 1, most))  # so that none is left
    give(*channels[1])
    print(*(os.path.samestat(os.fstat(number), os.fstat(file)) for number in (low, high)))
"""


def test_reads_past_the_end_take_no_memory_and_idle_channels_give_theirs_back(run_forked):
    words = run_forked(_LONG_CALLS, hostile_plugin()).stdout.split()
    assert words == [*["100", "True", "100"] * 2, *["True"] * 3]


def test_no_memory_in_the_next_process_is_reported_and_does_not_end_that(run_forked):
    assert run_forked(_NO_AREA_IN_THE_NEXT_PROCESS).stdout.split() == ["8", "True", "True", "1"]


def test_a_worker_without_descriptors_closes_none_of_the_plugins(run_forked):
    assert run_forked(_WITHOUT_DESCRIPTORS).stdout == "True True\n"
