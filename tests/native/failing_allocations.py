"""Do what users do, with an allocation of the core's that fails: the first, the second, and so on.

Arguments: a part, and a plugin for it. Prints how many allocations failed. What does not end in
success or an error of the package raises.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from contextlib import suppress
from functools import partial

import numpy as np

from modular_tf.errors import InternalError, ModularTFError
from modular_tf.native.ffi import lib
from modular_tf.native.runtime_library import absent_function
from modular_tf.service.service import PluginService
from tests.device.arenas import Arena, HostMemory
from tests.fixtures.native_errors import none_is_left
from tests.fixtures.op_definitions import register

_allocator = ctypes.CDLL(None)
_MOST = 100
_OF_ONE_PATH = (
    "create_dir", "recursively_create_dir", "delete_dir", "delete_recursively", "path_exists",
    "stat", "is_directory", "get_file_size", "get_children", "translate_name",
)  # fmt: skip


def attempt(use, given, n, *, all_fail):
    """Let an allocation after the next `n` fail in a step; return how many did."""
    _allocator.fail_allocations(ctypes.c_long(n), int(all_fail))
    try:
        with suppress(ModularTFError, MemoryError):
            use(given)
    finally:
        failed = _allocator.end_failures()
    return int(failed)


def exhaust(name, prepare, use):
    """Try a step until it needs no more; return how many allocations failed."""
    total = 0
    for all_fail in (False, True):
        for n in range(_MOST):
            with none_is_left():
                failed = attempt(use, prepare(), n, all_fail=all_fail)
            total += failed
            if not failed:
                break
        else:
            raise AssertionError(f"{name} allocates for ever")
    with suppress(ModularTFError):
        use(prepare())  # and once more as ever
    return total


def nothing():
    pass


def filesystem_steps(plugin):
    service = PluginService(plugin_paths=[plugin], bundled=False)
    service.load()
    fs = service.filesystem("fixture")
    file, missing = "fixture://h/file", "fixture://h/missing"
    long = "fixture://h/" + "x" * 5000  # longer than what needs no allocation
    for name, call in {
        **{name: getattr(fs, name) for name in _OF_ONE_PATH},
        "open": lambda uri: fs.new_random_access_file(uri).close(),
        "region": lambda uri: fs.new_read_only_memory_region_from_file(uri).close(),
        "copy_file": lambda uri: fs.copy_file(uri, uri + "2"),
        "rename_file": lambda uri: fs.rename_file(uri + "2", uri + "3"),
        "paths_exist": lambda uri: fs.paths_exist([uri, missing, uri]),
        "get_matching_paths": lambda uri: fs.get_matching_paths(uri + "*"),
        "flush_caches": lambda _uri: fs.flush_caches(),
        "options": lambda _uri: fs.get_filesystem_configuration(),
        "start_transaction": lambda _uri: fs.start_transaction(),
    }.items():
        for uri in (file, missing, long):
            yield name, (lambda uri=uri: uri, call)
    with fs.new_writable_file(file) as writer:
        writer.append(b"content")
    yield "read", (lambda: fs.new_random_access_file(file), lambda reader: reader.read(0, 100))
    yield "close a reader", (lambda: fs.new_random_access_file(file), lambda file: file.close())
    for name in ("tell", "flush", "sync", "close"):
        yield name, (lambda: fs.new_writable_file(missing), lambda w, name=name: getattr(w, name)())
    yield "append", (lambda: fs.new_writable_file(missing), lambda writer: writer.append(b"x"))
    yield "open a closed one", (lambda: closed(plugin), lambda fs: fs.stat(file))
    yield "load", (nothing, lambda _nothing: loaded(plugin).close())
    yield "init", (lambda: loaded(plugin), lambda service: service.filesystem("fixture"))
    yield "close", (lambda: opened(plugin), lambda service: service.close())


def worker_steps(plugin):
    service = PluginService(isolation="process", plugin_paths=[plugin], bundled=False)
    service.load()
    fs = service.filesystem("fixture")
    file, missing = "fixture://h/file", "fixture://h/missing"
    with fs.new_writable_file(file) as writer:
        writer.append(b"content")
    for name, call in {
        "open": lambda uri: fs.new_random_access_file(uri).close(),
        "write": lambda uri: fs.new_writable_file(uri + "2").close(),
        "region": lambda uri: fs.new_read_only_memory_region_from_file(uri).close(),
        "stat": fs.stat,
        "path_exists": fs.path_exists,
        "delete_dir": fs.delete_dir,
    }.items():
        for uri in (file, missing):
            yield name, (lambda uri=uri: uri, partial(without_blame, call))


def without_blame(call, given):
    """Call it; an error that says that the plugin threw is none of the package."""
    try:
        call(given)
    except InternalError as error:
        raise AssertionError(error) from error


def loaded(plugin):
    service = PluginService(plugin_paths=[plugin], bundled=False)
    service.load()
    return service


def opened(plugin):
    service = loaded(plugin)
    service.filesystem("fixture").new_writable_file("fixture://h/left")
    return service


def closed(plugin):
    service = opened(plugin)
    fs = service.filesystem("fixture")
    service.close()
    return fs


def device_steps(_plugin):
    service = PluginService()
    service.load()
    device = service.device("CPU:0")
    stream, other = device.create_stream(), device.create_stream()
    memory, event = device.allocate(64), device.create_event()
    for name, call in {
        "allocate": lambda: device.allocate(64).close(),
        "allocate_host": lambda: device.allocate_host(64).close(),
        "allocate_unified": lambda: device.allocate_unified(64).close(),
        "put": lambda: device.put(b"bytes" * 100).to_numpy(),
        "create_stream": lambda: device.create_stream().close(),
        "create_event": lambda: device.create_event().close(),
        "create_timer": lambda: device.create_timer().close(),
        "memory_usage": device.memory_usage,
        "allocator_stats": device.allocator_stats,
        "memcpy_htod": lambda: stream.memcpy_htod(memory, bytes(64)),
        "memcpy_dtoh": lambda: stream.memcpy_dtoh(bytearray(64), memory),
        "memcpy_dtod": lambda: stream.memcpy_dtod(memory, memory),
        "too much": lambda: stream.memcpy_htod(memory, bytes(65)),
        "mem_zero": lambda: stream.mem_zero(memory),
        "memset32": lambda: stream.memset32(memory, 1),
        "wait_for": lambda: stream.wait_for(other),
        "record_event": lambda: event.record(stream),
        "wait_event": lambda: stream.wait_event(event),
        "event status": lambda: event.status,
        "wait": event.wait,
        "block_until_done": stream.block_until_done,
        "synchronize": device.synchronize,
    }.items():
        yield name, (nothing, lambda _nothing, call=call: call())
    yield "callback", (device.create_stream, call_back)
    yield "closed", (lambda: gone(service), lambda memory: stream.memcpy_htod(memory, b"x"))
    for name, arena_call in {
        "allocate": lambda arena: arena.allocate(1000),
        "grow": lambda arena: arena.allocate(8 << 20),
        "too much": lambda arena: arena.allocate(1 << 40),
        "free": lambda arena: arena.free(12345),
        "picture": lambda arena: arena.picture(),
        "close": lambda arena: arena.close(),
    }.items():
        yield f"arena: {name}", (lambda: Arena(HostMemory(), 64 << 20), arena_call)
    yield "make an arena", (HostMemory, lambda memory: Arena(memory, 1 << 20))


def call_back(stream):
    stream.add_callback(int)
    stream.block_until_done()


def gone(service):
    memory = service.device("CPU:0").allocate(8)
    memory.close()
    return memory


def op_steps(_plugin):
    names = (f"Op{number}".encode() for number in itertools.count())
    for name, attr in {
        "list": b"T: list({float, int32}) >= 2 = [DT_FLOAT, DT_INT32]",
        "string": b"s: string = '" + b"x" * 100 + b"'",
        "number": b"f: float = 0.1",
        "shape": b"s: shape = {dim {size: 2}}",
        "fault": b"s: quux",
    }.items():
        yield name, (partial(next, names), partial(define, attr))
    yield "absent function", (nothing, lambda _nothing: absent_function("TF_Quux", "x" * 100))


def define(attr, name):
    """Register an op with two attributes, which is kept with both or not at all."""
    found = register(name, [attr, attr.replace(b":", b"2:", 1)], [b"x: float"])
    assert found.code in (0, 3, 8)  # 3: where there was no memory for a builder, too
    assert (found.definition is not None) == (found.code == 0)
    assert found.definition is None or len(found.definition.attrs) == 2


def kernel_steps(plugin):
    service = PluginService()
    service.load("host_device")
    service.load(plugin)
    device = service.device("CPU:0")
    value = np.arange(3, dtype="float32")
    variable = device.variable("float32")
    variable.assign(value)
    for name, call in {
        "assign": lambda: device.op("MtfAssign")(variable, value),
        "add": lambda: device.op("MtfAdd")(variable, value),
        "read": lambda: device.op("MtfRead")(variable).close(),
        "add to both": lambda: device.op("MtfAddToBoth")(variable, variable, value),
        "lock": lambda: device.op("MtfKeepLocked")(variable),
        "temporary": lambda: device.op("MtfEndTemporary")(device.op("MtfTemporary")()).close(),
        "a variable": lambda: device.variable("float32").close(),
        "assign by Python": lambda: variable.assign(value),
        "assign many dimensions": lambda: variable.assign(value.reshape(3, *(1,) * 7)),
        "value": lambda: variable.value().close(),
    }.items():
        yield name, (nothing, lambda _nothing, call=call: call())
    yield "the first call", (lambda: with_kernels(plugin), first_call)


def with_kernels(plugin):
    service = PluginService()
    service.load("host_device")
    service.load(plugin)
    return service


def first_call(service):
    with service:
        device = service.device("CPU:0")
        device.op("MtfAssign")(device.variable("float32"), np.zeros((1,) * 8, "float32"))


_PARTS = {
    "filesystem": filesystem_steps,
    "worker": worker_steps,
    "device": device_steps,
    "kernels": kernel_steps,
    "ops": op_steps,
}


def main():
    part, plugin = sys.argv[1:]
    total = 0
    for name, (prepare, use) in _PARTS[part](plugin):
        total += exhaust(name, prepare, use)
    print(total)
    assert lib.mtf_errors_alive() == 0


main()
