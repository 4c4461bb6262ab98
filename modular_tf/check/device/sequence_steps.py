"""Random sequences of work on a device, and what performs them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.check.device.model import Place
from modular_tf.check.device.model_run import ModelRun
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.sequences import Data, Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.device.ground import DeviceGround
    from modular_tf.check.sequences import Program, StepKind

_SIZE = 32
_MEMORIES, _STREAMS, _EVENTS = 3, 3, 3
_HOST = -1
"""In place of a stream: the copy is done when it returns."""

_MOST_TOLD = 5


_STREAM, _EVENT, _MEMORY = (Numbers(0, most - 1) for most in (_STREAMS, _EVENTS, _MEMORIES))
_STREAM_OR_HOST = Numbers(_HOST, _STREAMS - 1)
_AT = Numbers(0, _SIZE - 1)

STEPS: Sequence[StepKind] = (
    (("write",), (_STREAM_OR_HOST, _MEMORY, _AT, Data(1, _SIZE))),
    (("fill",), (_STREAM, _MEMORY, _AT, _AT, Numbers(0, 255))),
    (("copy",), (_STREAM_OR_HOST, _MEMORY, _AT, _MEMORY, _AT, _AT)),
    (("read",), (_STREAM_OR_HOST, _MEMORY, _AT, _AT)),
    (("read",), (_STREAM_OR_HOST, _MEMORY, _AT, _AT)),
    (("depend",), (_STREAM, _STREAM)),
    (("record",), (_STREAM, _EVENT)),
    (("wait_for_event",), (_STREAM, _EVENT)),
    (("poll",), (_EVENT,)),
    (("block_for_event",), (_EVENT,)),
    (("block_for_stream",), (_STREAM,)),
    (("synchronize",), ()),
    (("replace_stream",), (_STREAM,)),
    (("replace_memory",), (_MEMORY,)),
)
"""What a step may be."""


def script(program: Program) -> list[str]:
    """Return a program as C-like statements, one a step.

    Memories `m0`, streams `s0` and events `e0` are numbered from 0; memories have 32 bytes.
    """
    return [_statement(operation, arguments) for operation, arguments in program]


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

    Raises `Deviation` where the device did what the model rules out, and `Blocked` where there is
    not enough memory.
    """
    run = ModelRun(ground.subject)

    def allocated() -> int:
        memory = run.allocate(_SIZE)
        if memory is None:
            raise Blocked(f"allocate({_SIZE}) gave nothing")
        run.write(None, Place(memory, 0, _SIZE), bytes(_SIZE))
        return memory

    memories = [allocated() for _ in range(_MEMORIES)]
    streams = [run.create_stream() for _ in range(_STREAMS)]
    events = [run.create_event() for _ in range(_EVENTS)]

    def place(memory: int, at: int, size: int) -> Place:
        return Place(memories[memory], at, size)

    def do(operation: str, arguments: list[Any]) -> None:
        match operation, arguments:
            case "write", [stream, memory, at, data]:
                content = bytes.fromhex(data)[: _SIZE - at]
                run.write(on(stream), place(memory, at, len(content)), content)
            case "fill", [stream, memory, at, size, value]:
                run.fill(streams[stream], place(memory, at, _length(at, size)), value)
            case "copy", [stream, to, to_at, of, of_at, size] if to != of:  # else it is undefined
                length = min(_length(to_at, size), _length(of_at, size))
                run.copy(on(stream), place(to, to_at, length), place(of, of_at, length))
            case "read", [stream, memory, at, size]:
                run.read(on(stream), place(memory, at, _length(at, size)))
            case "depend", [dependent, other] if dependent != other:
                run.depend(streams[dependent], streams[other])
            case "record" | "wait_for_event", [stream, event]:
                getattr(run, operation)(streams[stream], events[event])
            case "poll" | "block_for_event", [event]:
                getattr(run, operation)(events[event])
            case "block_for_stream", [stream]:
                run.block_for_stream(streams[stream])
            case "synchronize", []:
                run.synchronize()
            case "replace_stream", [stream]:
                run.destroy_stream(streams[stream])
                streams[stream] = run.create_stream()
            case "replace_memory", [memory]:
                run.synchronize()
                if run.model.is_unused(memories[memory]):
                    run.deallocate(memories[memory])
                    memories[memory] = allocated()

    def on(stream: int) -> int | None:
        return None if stream == _HOST else streams[stream]

    for operation, arguments in program:
        with suppress(Unsupported):
            do(operation, arguments)
    for memory in memories:
        with suppress(Unsupported):
            run.read(None, Place(memory, 0, _SIZE))
    run.close()
    if run.findings:
        raise Deviation(
            "the device did what no allowed order of its work does",
            found="; ".join(run.findings[:_MOST_TOLD]),
        )
