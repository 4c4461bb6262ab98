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


def test_reads_past_the_end_take_no_memory_and_idle_channels_give_theirs_back(run_forked):
    words = run_forked(_LONG_CALLS, hostile_plugin()).stdout.split()
    assert words == [*["100", "True", "100"] * 2, *["True"] * 3]
