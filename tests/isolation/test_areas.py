"""The memory through which long reads and writes go between the host and a worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.fixtures.children import PythonRunner

_MEMORY = """
    import time
    import modular_tf as mtf

    LIMIT_KIB = 1024

    def resident_kib():
        found, is_area = 0, False
        for line in open("/proc/self/smaps"):
            if "-" in line.split()[0]:
                is_area = "modular_tf call" in line
            elif is_area and line.startswith("Rss:"):
                found += int(line.split()[1])
        return found

    service = mtf.PluginService(isolation="process")
    service.load()
    fs = service.filesystem("ram")
    data = bytes(range(256)) * (1 << 15)
    for _ in range(2):  # what was given back is used again
        with fs.new_writable_file("ram://f") as file:
            file.append(data)
        used = resident_kib()
        end = time.monotonic() + 30
        while resident_kib() > LIMIT_KIB and time.monotonic() < end:
            time.sleep(0.05)
        print(used >= len(data) >> 10, resident_kib() <= LIMIT_KIB)
        assert fs.read_file("ram://f") == data
    service.close()
"""

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


def test_a_worker_gives_memory_back_that_no_call_uses(run_python: PythonRunner) -> None:
    assert run_python(_MEMORY).stdout == "True True\nTrue True\n"


def test_memory_is_given_back_between_calls_alone(run_python: PythonRunner) -> None:
    assert run_python(_PAUSES).stdout == "[]\n"
