"""The exact calls of each copy, as TensorFlow's host makes them (device-abi §B5).

Streams s1 to s4 are a device's compute, host to device, device to host and device to device; s5 to
s8 the second device's.
"""

from __future__ import annotations

import pytest

from modular_tf.device import executor as device_context
from tests.device.recording import RecordingPlugin, build_recording_plugin

SYNC = "synchronize_all_activity"
TO_DEVICE = [
    "create_stream_dependency s2 s1",
    "memcpy_htod s2 16",
    "create_event",
    "record_event s2 e1",
]
TO_HOST = [
    SYNC,
    "create_stream_dependency s3 s1",
    "memcpy_dtoh s3 16",
    "create_event",
    "record_event s3 e1",
]


@pytest.fixture
def second(recording):
    """Return another plugin, whose calls are logged by the first as `other:`."""
    plugin = RecordingPlugin(build_recording_plugin("librecording_again.so"))
    plugin.record_into(recording, "other:")
    return plugin


def pageable(device):
    return bytearray(16)


def pinned(device):
    return device.allocate_host(16)


def unified(device):
    return device.allocate_unified(16).view


@pytest.mark.parametrize("host", [pageable, pinned, unified])
def test_all_host_memory_is_copied_alike(recording, device, host):
    buffer, memory = host(device), device.allocate(16)
    for copy, calls in (
        (lambda: device.context.copy_host_to_device(memory, buffer), TO_DEVICE),
        (lambda: device.context.copy_device_to_host(buffer, memory), TO_HOST),
    ):
        assert len(device.context.streams) == 4
        recording.clear()
        event = copy()
        number = event_number(recording)
        assert recording.calls == [call.replace("e1", number) for call in calls]
        recording.clear()
        event.wait()
        assert recording.calls == [f"get_event_status {number}"]
        event.close()
        assert recording.calls[1:] == [f"destroy_event {number}"]


def event_number(recording):
    return recording.calls[-1].split()[-1]


def test_put_and_to_bytes_are_these_copies(recording, device):
    device.put(bytes(16))
    creations = [call for call in recording.calls if call.startswith("create_stream")]
    assert creations == ["create_stream"] * 4 + ["create_stream_dependency s2 s1"]
    recording.clear()
    array = device.put(bytes(range(16)))
    calls = [call.split()[0] for call in recording.calls if "alloc" not in call]
    assert calls[:4] == [call.split()[0] for call in TO_DEVICE]
    recording.clear()
    assert array.to_bytes() == bytes(range(16))
    number = next(call for call in recording.calls if call.startswith("record_event")).split()[-1]
    assert recording.calls[: len(TO_HOST)] == [call.replace("e1", number) for call in TO_HOST]


@pytest.mark.parametrize("size", [16, 0])
def test_between_two_devices_of_one_plugin(recording, size):
    with recording.devices() as [here, there]:
        source, target = here.allocate(size), there.allocate(size)
        assert [len(here.context.streams), len(there.context.streams)] == [4, 4]
        recording.clear()
        event = here.context.copy_to_device(there.context, target, source)
        assert recording.calls == [
            SYNC,
            "create_stream_dependency s4 s1",
            "create_stream_dependency s4 s5",
            *(["memcpy_dtod s4 16"] if size else []),
            "create_event",
            "record_event s4 e1",
        ]
        event.wait()


def test_on_one_device(recording, device):
    source, target = device.allocate(16), device.allocate(16)
    assert len(device.context.streams) == 4
    recording.clear()
    device.context.copy_on_device(target, source)
    assert recording.calls == ["memcpy_dtod s1 16"]


def copied_across(recording, second, size):
    """Return the calls of both plugins, in order, of a copy from the first to the second."""
    with recording.devices() as [here, _], second.devices() as [there, _]:
        source, target = here.allocate(size), there.allocate(size)
        data, back = bytes(range(256))[:size], bytearray(size)
        here.memcpy_htod(source, data)
        assert [len(here.context.streams), len(there.context.streams)] == [4, 4]
        recording.clear()
        event = here.context.copy_to_device(there.context, target, source)
        calls = recording.calls
        event.wait()
        there.memcpy_dtoh(back, target)
        assert back == data
        return calls


def test_across_platforms_through_the_host(recording, second):
    assert copied_across(recording, second, 16) == [
        *TO_HOST,
        "get_event_status e1",
        "destroy_event e1",
        *(f"other:{call}" for call in TO_DEVICE),
    ]
    calls = copied_across(recording, second, 0)
    assert [call.split()[0] for call in calls] == [
        "other:create_stream_dependency",
        "other:create_event",
        "other:record_event",
    ]


def test_across_platforms_piece_by_piece(recording, second, monkeypatch):
    monkeypatch.setattr(device_context, "_PIECE", 16)
    calls = copied_across(recording, second, 40)
    steps = [call for call in calls if "memcpy" in call or "get_event_status" in call]
    assert steps == [
        "memcpy_dtoh s3 16",
        "get_event_status e1",
        "other:memcpy_htod s2 16",
        "memcpy_dtoh s3 16",  # beside the former
        "get_event_status e2",
        "other:get_event_status e1",  # whose buffer the third piece uses
        "other:memcpy_htod s2 16",
        "memcpy_dtoh s3 8",
        "get_event_status e3",
        "other:get_event_status e2",
        "other:memcpy_htod s2 8",
    ]
