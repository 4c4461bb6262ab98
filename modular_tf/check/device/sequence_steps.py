"""Random sequences of work on a device, and what performs them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.check.device.model import Place
from modular_tf.check.device.model_run import ModelRun
from modular_tf.check.expectation import Blocked, Deviation, Unsupported

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.sequences.program import Program, Step

_SIZE = 32
_MEMORIES, _STREAMS, _EVENTS = 3, 3, 3
_HOST = -1
"""In place of a stream: the copy is done when it returns."""

_MOST_TOLD = 5


def steps() -> SearchStrategy[Step]:
    """Return where steps come from."""
    from hypothesis import strategies as st  # noqa: PLC0415  (an extra, and slow to load)

    stream = st.integers(0, _STREAMS - 1)
    stream_or_host = st.integers(_HOST, _STREAMS - 1)
    event = st.integers(0, _EVENTS - 1)
    memory = st.integers(0, _MEMORIES - 1)
    at = st.integers(0, _SIZE - 1)
    data = st.binary(min_size=1, max_size=_SIZE).map(bytes.hex)
    return st.one_of(
        _step(st, "write", stream_or_host, memory, at, data),
        _step(st, "fill", stream, memory, at, at, st.integers(0, 255)),
        _step(st, "copy", stream_or_host, memory, at, memory, at, at),
        _step(st, "read", stream_or_host, memory, at, at),
        _step(st, "read", stream_or_host, memory, at, at),
        _step(st, "depend", stream, stream),
        _step(st, "record", stream, event),
        _step(st, "wait_for_event", stream, event),
        _step(st, "poll", event),
        _step(st, "block_for_event", event),
        _step(st, "block_for_stream", stream),
        _step(st, "synchronize"),
        _step(st, "replace_stream", stream),
        _step(st, "replace_memory", memory),
    )


def _step(st: Any, name: str, *arguments: Any) -> Any:
    """Return a strategy of steps; arguments are lists, as they come back from JSON."""
    return st.tuples(st.just(name), st.tuples(*arguments).map(list))


def script(program: Program) -> list[str]:
    """Return a program as C-like statements, one a step.

    Memories `m0`, streams `s0` and events `e0` are numbered from 0; memories have 32 bytes.
    """
    return [_statement(operation, arguments) for operation, arguments in program.steps]


_STATEMENTS = {
    "depend": "create_stream_dependency(s{0}, s{1});",
    "record": "record_event(s{0}, e{1});",
    "wait_for_event": "wait_for_event(s{0}, e{1});",
    "poll": "get_event_status(e{0});",
    "block_for_event": "block_host_for_event(e{0});",
    "block_for_stream": "block_host_until_done(s{0});",
    "synchronize": "synchronize_all_activity();",
    "replace_stream": "destroy_stream(s{0}); create_stream(&s{0});",
    "replace_memory": "deallocate(m{0}); allocate(&m{0});",
}


def _statement(operation: str, arguments: list[Any]) -> str:
    if operation in _STATEMENTS:
        return _STATEMENTS[operation].format(*arguments)
    stream, memory, at, *rest = arguments
    place = f"m{memory} + {at}"
    if operation == "write":
        data = bytes.fromhex(rest[0])[: _SIZE - at]
        text = "".join(f"\\x{byte:02x}" for byte in data)
        return _copy("htod", stream, place, f'"{text}"', len(data))
    if operation == "fill":
        return f"memset(s{stream}, {place}, {rest[1]}, {_length(at, rest[0])});"
    if operation == "copy":
        size = min(_length(at, rest[2]), _length(rest[1], rest[2]))
        return _copy("dtod", stream, place, f"m{rest[0]} + {rest[1]}", size)
    return _copy("dtoh", stream, "host", place, _length(at, rest[0]))


def _copy(way: str, stream: int, target: str, source: str, size: int) -> str:
    if stream == _HOST:
        return f"sync_memcpy_{way}({target}, {source}, {size});"
    return f"memcpy_{way}(s{stream}, {target}, {source}, {size});"


def _length(at: int, wanted: int) -> int:
    """Return a length from 1 on that does not reach beyond the memory."""
    return min(wanted + 1, _SIZE - at)


def perform(ground: DeviceGround, program: Program) -> None:
    """Do a program to a device and to its model, then read all memories.

    Args:
        ground: Of the device.
        program: The program; operations that the plugin does not offer are left out.

    Raises:
        Deviation: The device did what the model rules out.
        Blocked: There is not enough memory.
    """
    run = _Run(ground)
    for operation, arguments in program.steps:
        with suppress(Unsupported):
            getattr(run, operation)(*arguments)
    run.finish()


class _Run:
    """A device at work, with its things by their numbers in programs."""

    def __init__(self, ground: DeviceGround) -> None:
        self._run = ModelRun(ground.subject)
        self._memories = [self._memory() for _ in range(_MEMORIES)]
        self._streams = [self._run.create_stream() for _ in range(_STREAMS)]
        self._events = [self._run.create_event() for _ in range(_EVENTS)]

    def _memory(self) -> int:
        memory = self._run.allocate(_SIZE)
        if memory is None:
            raise Blocked(f"allocate({_SIZE}) gave nothing")
        self._run.write(None, Place(memory, 0, _SIZE), bytes(_SIZE))
        return memory

    def _stream(self, number: int) -> int | None:
        return None if number == _HOST else self._streams[number]

    def _place(self, memory: int, at: int, size: int) -> Place:
        return Place(self._memories[memory], at, size)

    def write(self, stream: int, memory: int, at: int, data: str) -> None:
        content = bytes.fromhex(data)[: _SIZE - at]
        place = self._place(memory, at, len(content))
        self._run.write(self._stream(stream), place, content)

    def fill(self, stream: int, memory: int, at: int, size: int, value: int) -> None:
        place = self._place(memory, at, _length(at, size))
        self._run.fill(self._streams[stream], place, value)

    def copy(self, stream: int, to: int, to_at: int, of: int, of_at: int, size: int) -> None:
        if to != of:  # overlapping copies are undefined
            length = min(_length(to_at, size), _length(of_at, size))
            target, source = self._place(to, to_at, length), self._place(of, of_at, length)
            self._run.copy(self._stream(stream), target, source)

    def read(self, stream: int, memory: int, at: int, size: int) -> None:
        self._run.read(self._stream(stream), self._place(memory, at, _length(at, size)))

    def depend(self, dependent: int, other: int) -> None:
        if dependent != other:
            self._run.depend(self._streams[dependent], self._streams[other])

    def record(self, stream: int, event: int) -> None:
        self._run.record(self._streams[stream], self._events[event])

    def wait_for_event(self, stream: int, event: int) -> None:
        self._run.wait_for_event(self._streams[stream], self._events[event])

    def poll(self, event: int) -> None:
        self._run.poll(self._events[event])

    def block_for_event(self, event: int) -> None:
        self._run.block_for_event(self._events[event])

    def block_for_stream(self, stream: int) -> None:
        self._run.block_for_stream(self._streams[stream])

    def synchronize(self) -> None:
        self._run.synchronize()

    def replace_stream(self, stream: int) -> None:
        self._run.destroy_stream(self._streams[stream])
        self._streams[stream] = self._run.create_stream()

    def replace_memory(self, memory: int) -> None:
        self._run.synchronize()
        if self._run.model.is_unused(self._memories[memory]):
            self._run.deallocate(self._memories[memory])
            self._memories[memory] = self._memory()

    def finish(self) -> None:
        """Read all memories and demand that the model rules nothing out."""
        for memory in self._memories:
            with suppress(Unsupported):
                self._run.read(None, Place(memory, 0, _SIZE))
        self._run.close()
        if self._run.findings:
            raise Deviation(
                "the device did what no allowed order of its work does",
                found="; ".join(self._run.findings[:_MOST_TOLD]),
            )
