"""Thousands of objects come and go: malloc, the threads and the open files stay as they were.

The bytes that malloc has handed out are counted, not the process's size: Python's own objects too,
all in one arena, and without malloc's caches of threads, which count as handed out. What leaks does
so in every round; what the C library keeps of ended threads comes and goes in some of them, so the
median round counts.
"""

from __future__ import annotations

import pytest

from tests.device.conftest import ROOT

ROUND = 300
ROUNDS = 7

_COUNT = f"""
import ctypes, gc, os, sys, threading
sys.path.append(sys.argv[2])
from pathlib import Path
from statistics import median
from modular_tf.device.streams import event_manager, host_callback

host_callback._IDLE_NS, event_manager._IDLE_S = 1_000_000, 0.001  # threads end when work does

class Mallinfo(ctypes.Structure):
    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in _names.split()]

mallinfo2 = ctypes.CDLL(None).mallinfo2
mallinfo2.restype = Mallinfo

def held():
    gc.collect()
    return mallinfo2().uordblks + mallinfo2().hblkhd

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

def threads_settle():
    for thread in threading.enumerate():
        if thread is not threading.current_thread():
            thread.join()

def judge(device):
    use(device, {ROUND})
    threads_settle()
    forget()
    files, after = len(os.listdir("/proc/self/fd")), [held()]
    for _ in range({ROUNDS}):
        use(device, {ROUND})
        threads_settle()
        forget()
        after.append(held())
    growth = median(later - earlier for earlier, later in zip(after, after[1:]))
    print(growth, len(os.listdir("/proc/self/fd")) - files, len(os.listdir("/proc/self/task")))
"""

_RECORDING = """
from tests.device.recording import RecordingPlugin
recording = RecordingPlugin(Path(sys.argv[1]))
forget = recording.clear
with recording.devices() as [device, _]:
    judge(device)
    assert recording.allocated == 0
"""

_HOST = """
from modular_tf.service.service import PluginService
forget = lambda: None
with PluginService() as service:
    service.load("host_device")
    device = service.device("CPU:0")
    judge(device)
    assert device.allocator_stats().bytes_in_use == 0
"""

_PLATFORMS = """
from tests.device.recording import RecordingPlugin
recording = RecordingPlugin(Path(sys.argv[1]))
forget = recording.clear

def use(_, n):
    for _ in range(n // 10):
        with recording.devices() as [first, second]:
            kept = [first.create_stream(), second.allocate(8), first.create_timer()]
            kept[0].record_event().wait()

judge(None)
"""


@pytest.mark.parametrize(
    "subject", [_RECORDING, _HOST, _PLATFORMS], ids=["objects", "host device", "platforms"]
)
def test_nothing_is_left(run_python, recording_library, subject):
    child = run_python(
        _COUNT + subject,
        recording_library,
        ROOT,
        env={
            "PYTHONMALLOC": "malloc",
            "MALLOC_ARENA_MAX": "1",
            "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
        },
    )
    growth, files, threads = map(int, child.stdout.split())
    assert growth < ROUND * 8  # 8 bytes per turn: less than the smallest of its objects
    assert files == 0
    assert threads == 1
