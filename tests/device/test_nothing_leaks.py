"""Thousands of objects come and go: memory, the threads and the open files stay as they were."""

from __future__ import annotations

from tests.fixtures.memory_in_use import COUNTED, Growth

ROUND = 120

_COUNT = f"""
import sys
from modular_tf.device.streams import stream as host_callback
from modular_tf.service.service import PluginService
from tests.device.recording import RecordingPlugin
from tests.fixtures.memory_in_use import growth, join_threads

host_callback._IDLE_NS = 1_000_000  # threads end when work does

def use(device, n):
    for number in range(n):
        stream, memory, timer = device.create_stream(), device.allocate(64), device.create_timer()
        pinned, unified = device.allocate_host(64), device.allocate_unified(64)
        timer.start(stream)
        stream.memcpy_htod(memory, pinned.view)
        stream.memset(memory, 7)
        stream.memcpy_dtoh(bytearray(64), memory)
        stream.add_callback(lambda: None)
        timer.stop(stream)
        event = stream.record_event()
        event.wait()
        stream.block_until_done()
        assert timer.nanoseconds >= 0
        part = memory.part(8, 8)
        if number % 2:
            for one in (stream, event, timer, memory, pinned, unified, part):
                one.close()

def load(_, n):
    for _ in range(n // 10):
        with recording.devices() as [first, second]:
            kept = [first.create_stream(), second.allocate(8), first.create_timer()]
            kept[0].record_event().wait()

def judge(work, device):
    def one_round():
        work(device, {ROUND})
        join_threads()
        recording.clear()

    print(*growth(one_round))

recording = RecordingPlugin(sys.argv[1])
with recording.devices() as [device, _]:
    judge(use, device)
    assert recording.allocated == 0
with PluginService() as service:
    service.load("host_device")
    judge(use, service.device("CPU:0"))
    assert service.device("CPU:0").allocator_stats().bytes_in_use == 0
judge(load, None)
"""


def test_nothing_is_left(run_python, recording_library):
    child = run_python(_COUNT, recording_library, env=COUNTED)
    grown = [Growth(*map(int, line.split())) for line in child.stdout.splitlines()]

    assert len(grown) == 3
    for growth in grown:
        assert growth.memory < ROUND * 8  # 8 bytes per turn: less than the smallest of its objects
        assert growth.descriptors == 0
        assert growth.threads == 1
