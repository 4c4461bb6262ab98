"""Random sequences of work on a device, and what performs them."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.check.device.model import EVENTS, HOST, MEMORIES, SIZE, STREAMS, ModelRun, length
from modular_tf.check.expectation import Unsupported

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from modular_tf.check.device.workspace import Workspace
    from modular_tf.check.sequences.program import Program, Step


def steps() -> SearchStrategy[Step]:
    """Return where steps come from."""
    from hypothesis import strategies as st  # noqa: PLC0415  (an extra, and slow to load)

    stream = st.integers(0, STREAMS - 1)
    stream_or_host = st.integers(HOST, STREAMS - 1)
    event = st.integers(0, EVENTS - 1)
    memory = st.integers(0, MEMORIES - 1)
    at = st.integers(0, SIZE - 1)
    data = st.binary(min_size=1, max_size=SIZE).map(bytes.hex)
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
    """Do a program to a device and to its model, then read all memories.

    Args:
        device: The device.
        program: The program; operations that the plugin does not offer are left out.

    Raises:
        Deviation: The device did what the model rules out.
        Blocked: There is not enough memory.
    """
    run = ModelRun(device)
    for operation, arguments in program.steps:
        with suppress(Unsupported):
            getattr(run, operation)(*arguments)
    run.finish()
