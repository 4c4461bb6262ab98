"""Jobs on filesystems and devices; each leaves nothing behind and checks what it reads."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from modular_tf.errors import NotFoundError

_MOST_BYTES = 1 << 18
_TYPES = ("float32", "int64", "uint8", "complex64", "bool")


def files(fs, folder, dice):
    """Write, append, read in pieces, copy, rename, list and remove."""
    fs.recursively_create_dir(folder)
    content = dice.randbytes(dice.randrange(1, _MOST_BYTES))
    half = len(content) // 2
    with fs.new_writable_file(f"{folder}/f") as writer:
        writer.append(content[:half])
        writer.append(content[half:])
    with fs.new_random_access_file(f"{folder}/f") as reader:
        at = dice.randrange(len(content))
        assert reader.read(at, 4096) == content[at : at + 4096]
    fs.copy_file(f"{folder}/f", f"{folder}/g")
    fs.rename_file(f"{folder}/f", f"{folder}/h")
    assert sorted(fs.get_children(folder)) == ["g", "h"]
    assert [path[-1] for path in fs.get_matching_paths(f"{folder}/?")] == ["g", "h"]
    assert fs.stat(f"{folder}/g").length == len(content)
    with fs.open(f"{folder}/h", "rb") as stream:
        assert stream.read() == content
    counts = fs.delete_recursively(folder)
    assert (counts.undeleted_files, counts.undeleted_dirs) == (0, 0)


def region(fs, folder, dice):
    """View a file as memory, longer than the file is open."""
    fs.recursively_create_dir(folder)
    content = dice.randbytes(dice.randrange(1, 1 << 14))
    with fs.open(f"{folder}/r", "wb") as stream:
        stream.write(content)
    with fs.new_read_only_memory_region_from_file(f"{folder}/r") as whole:
        view = whole.view()
    assert bytes(view) == content
    del view
    gc.collect(0)
    fs.delete_recursively(folder)


def errors(fs, folder, dice):
    """Ask for what is not there."""
    missing = f"{folder}-{dice.randrange(1 << 30)}/none"
    for ask in (fs.stat, fs.new_random_access_file, fs.delete_file):
        with pytest.raises(NotFoundError, match="none"):
            ask(missing)


def arrays(device, dice):
    """Put arrays on the device, and get them back in each of three ways."""
    source = _any_array(dice)
    with device.put(source) as put:
        assert np.array_equal(put.to_numpy(), source)
        assert put.to_bytes() == source.tobytes()
        with put.copy_to(device) as copied:
            assert np.array_equal(copied.to_numpy(), source)


def exchange(device, dice):
    """Hand an array to numpy by DLPack; the consumer outlives the producer."""
    source = _any_array(dice)
    with device.put(source) as put:
        seen = np.from_dlpack(put.to_host())
    assert np.array_equal(seen, source)


def streams(device, dice):
    """Order work by streams, events, a timer and a callback."""
    size = dice.randrange(1, 1 << 15)
    data, back, called = dice.randbytes(size), bytearray(size), threading.Event()
    with (
        device.create_stream() as first,
        device.create_stream() as second,
        device.create_timer() as timer,
        device.allocate(size) as memory,
    ):
        timer.start(first)
        first.memcpy_htod(memory, data)
        event = first.record_event()
        second.wait_event(event)
        second.memcpy_dtoh(back, memory)
        second.add_callback(called.set)
        timer.stop(first)
        event.wait(60)
        second.block_until_done()
    assert called.is_set()
    assert back == data


def _any_array(dice):
    shape = tuple(dice.randrange(1, 40) for _ in range(dice.randrange(1, 4)))
    numbers = np.random.default_rng(dice.getrandbits(32)).integers(0, 100, shape)
    return numbers.astype(dice.choice(_TYPES))
