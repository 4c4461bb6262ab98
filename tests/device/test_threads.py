from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from modular_tf.device.registry import DeviceRegistry

THREADS = 8


def together(task):
    """Run `task` in several threads that start at the same time; return what they returned."""
    barrier = threading.Barrier(THREADS)

    def run():
        barrier.wait()
        return task()

    with ThreadPoolExecutor(THREADS) as pool:
        return [future.result() for future in [pool.submit(run) for _ in range(THREADS)]]


def test_a_device_is_created_once_and_one_object_for_all_threads(steered, platform):
    details = together(lambda: platform.device_details(0))
    assert len({id(entry) for entry in details}) == 1
    assert steered.calls.count("create_device:0") == 1

    registry = DeviceRegistry()
    registry.register(platform, plugin="steered")
    listings = together(registry.devices)
    assert len({tuple(map(id, devices)) for devices in listings}) == 1


def test_loading_and_closing_in_parallel_keeps_init_and_destroy_in_pairs(steered):
    def load_and_close():
        with steered.load() as platform:
            return platform.device_count()

    assert together(load_and_close) == [2] * THREADS
    relevant = [call for call in steered.calls if call in {"init", "destroy_platform"}]
    assert relevant == ["init", "destroy_platform"] * (len(relevant) // 2)
