"""Random sequences of work on a device, and what performs them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.check.device.model import EVENTS, HOST, MEMORIES, SIZE, STREAMS, ModelRun, length
from modular_tf.check.expectation import Unsupported
from modular_tf.check.sequences import Data, Numbers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.check.device.workspace import Workspace
    from modular_tf.check.sequences import Program, StepKind


_STREAM, _EVENT, _MEMORY = (Numbers(0, most - 1) for most in (STREAMS, EVENTS, MEMORIES))
_STREAM_OR_HOST = Numbers(HOST, STREAMS - 1)
_AT = Numbers(0, SIZE - 1)

STEPS: Sequence[StepKind] = (
    (("write",), (_STREAM_OR_HOST, _MEMORY, _AT, Data(1, SIZE))),
    (("fill",), (_STREAM, _MEMORY, _AT, _AT, Numbers(0, 255))),
    (("copy",), (_STREAM_OR_HOST, _MEMORY, _AT, _MEMORY, _AT, _AT)),
    (("read",), (_STREAM_OR_HOST, _MEMORY, _AT, _AT)),
    (("read",), (_STREAM_OR_HOST, _MEMORY, _AT, _AT)),
    (("depend",), (_STREAM, _STREAM)),
    (("record", "wait_for_event"), (_STREAM, _EVENT)),
    (("poll", "block_for_event"), (_EVENT,)),
    (("block_for_stream", "replace_stream"), (_STREAM,)),
    (("synchronize",), ()),
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
        data = bytes.fromhex(rest[0])[: SIZE - at]
        text = "".join(f"\\x{byte:02x}" for byte in data)
        return _copy("htod", stream, place, f'"{text}"', len(data))
    if operation == "fill":
        return f"memset(s{stream}, {place}, {rest[1]}, {length(at, rest[0])});"
    if operation == "copy":
        size = min(length(at, rest[2]), length(rest[1], rest[2]))
        return _copy("dtod", stream, place, f"m{rest[0]} + {rest[1]}", size)
    return _copy("dtoh", stream, "host", place, length(at, rest[0]))


def _copy(way: str, stream: int, target: str, source: str, size: int) -> str:
    if stream == HOST:
        return f"sync_memcpy_{way}({target}, {source}, {size});"
    return f"memcpy_{way}(s{stream}, {target}, {source}, {size});"


def perform(device: Workspace, program: Program) -> None:
    """Do a program to a device and to its model, then read all memories."""
    run = ModelRun(device)
    for operation, arguments in program:
        with suppress(Unsupported):
            getattr(run, operation)(*arguments)
    run.finish()
