"""Where a check of a device works: the device, and what the check makes there."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.device.host_buffer import HostBuffer
from modular_tf.check.expectation import Blocked, Unsupported

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Mapping

    from modular_tf.check.device.subject import (
        Answer,
        Block,
        DeviceSubject,
        Event,
        Memory,
        Stream,
        Timer,
        Work,
    )
    from modular_tf.check.target import Target

_GATE_SECONDS = 20.0
"""How long a gate stays shut at most: longer than any step of a check, shorter than a check."""

_CALLBACK_CALLS = frozenset({"host_callback", "stream.add_callback"})
"""What reports call the enqueueing of a callback, by the plugin's slot and through the host."""

_ABOUT: Mapping[str, str] = {
    "allocate": "SE-131",
    "block_host_until_done": "SE-236",
    "create_stream": "SE-238",
    "host_callback": "SE-278",
    "memcpy_dtod": "SE-204",
    "memcpy_dtoh": "SE-203",
    "memcpy_htod": "SE-202",
    "record_event": "SE-253",
    "sync_memcpy_dtoh": "SE-200",
    "sync_memcpy_htod": "SE-200",
    "synchronize_all_activity": "SE-252",
}
"""The check that each step of a preparation is about."""

_ORDER = ("timer", "event", "stream", "device", "host", "unified")
"""What is destroyed first, as this package does."""


class Gate:
    """A host callback that lets its stream go on only when it is opened. [any thread].

    A plugin whose streams run at once would call it while it is enqueued, in the same thread: then
    it stays open, and `is_inline` says so: such a stream cannot be held.

    Nor can streams of a plugin whose callbacks do not work: a check that has more to say than what
    a busy stream would show goes on with the gate, which holds nothing.

    Attributes:
        is_inline: The callback ran while it was enqueued.
        reached: Set when the stream got there.
    """

    def __init__(self) -> None:
        self.is_inline = False
        self.reached = threading.Event()
        self._opened = threading.Event()
        self._maker: int | None = threading.get_ident()
        self._why_not: Blocked | Unsupported | None = None

    def work(self) -> None:
        """Wait until it is opened; what the stream calls."""
        self.is_inline = self._maker == threading.get_ident()
        self.reached.set()
        if not self.is_inline:
            self._opened.wait(_GATE_SECONDS)

    def open(self) -> None:
        """Let the stream go on. Safe to call twice."""
        self._opened.set()

    def enqueued(self, why_not: Blocked | Unsupported | None) -> None:
        """From now on its maker's thread may be the stream's as well.

        Args:
            why_not: Why the plugin did not take the callback, None where it did.
        """
        self._maker, self._why_not = None, why_not

    def require_callback(self) -> None:
        """Go on where the plugin took the callback.

        Raises:
            Blocked: It did not.
            Unsupported: It takes none.
        """
        if self._why_not is not None:
            raise self._why_not


class DeviceGround:
    """What a check of a device is given. What it makes is destroyed after the check.

    Attributes:
        subject: The device.
        target: What is checked, and how it is reached.
        random: Seeded by the run's seed and the check's id.
    """

    def __init__(self, subject: DeviceSubject, target: Target, random: random.Random) -> None:
        self.subject = subject
        self.target = target
        self.random = random
        self._made: dict[str, list[Any]] = {kind: [] for kind in _ORDER}
        self._buffers: list[HostBuffer] = []
        self._gates: list[Gate] = []
        self._destroy: dict[str, Callable[[Any], None]] = {
            "timer": subject.destroy_timer,
            "event": subject.destroy_event,
            "stream": subject.destroy_stream,
            "device": subject.deallocate,
            "host": subject.host_memory_deallocate,
            "unified": subject.unified_memory_deallocate,
        }

    # -- what the check needs, and others are about -----------------------------------------------

    def memory(self, n_bytes: int = 4096) -> Memory:
        """Return device memory whose content is not known."""
        memory: Memory = self._keep(
            "device", self.subject.allocate(n_bytes), f"allocate({n_bytes})"
        )
        return memory

    def filled(self, data: bytes) -> Memory:
        """Return device memory that holds `data`, copied by sync_memcpy_htod."""
        memory = self.memory(len(data))
        copied = self.subject.sync_memcpy_htod(memory, self.buffer(data), len(data))
        prepared(copied, "sync_memcpy_htod")
        return memory

    def content(self, memory: Memory, n_bytes: int | None = None) -> bytes:
        """Return what a memory holds, copied by sync_memcpy_dtoh."""
        size = memory.size if n_bytes is None else n_bytes
        buffer = self.buffer(size)
        prepared(self.subject.sync_memcpy_dtoh(buffer, memory, size), "sync_memcpy_dtoh")
        return buffer.content()

    def host_block(self, n_bytes: int = 4096) -> Block:
        """Return host memory of the plugin's."""
        what = f"host_memory_allocate({n_bytes})"
        block: Block = self._keep("host", self.subject.host_memory_allocate(n_bytes), what)
        return block

    def unified_block(self, n_bytes: int = 4096) -> Block:
        """Return unified memory of the plugin's."""
        what = f"unified_memory_allocate({n_bytes})"
        block: Block = self._keep("unified", self.subject.unified_memory_allocate(n_bytes), what)
        return block

    def stream(self) -> Stream:
        """Return a stream."""
        return self._keep("stream", self.subject.create_stream(), "create_stream")

    def event(self) -> Event:
        """Return an event that was not recorded."""
        return self._keep("event", self.subject.create_event(), "create_event")

    def timer(self) -> Timer:
        """Return a timer that was not started."""
        return self._keep("timer", self.subject.create_timer(), "create_timer")

    def adopt(self, kind: str, thing: Any) -> None:
        """Have something destroyed afterwards that the check itself made.

        Args:
            kind: "device", "host", "unified", "stream", "event" or "timer".
            thing: What the subject gave.
        """
        self._made[kind].append(thing)

    def destroy(self, thing: Any) -> None:
        """Destroy now what one of the functions above has made."""
        for kind, things in self._made.items():
            for index, kept in enumerate(things):
                if kept is thing:
                    del things[index]
                    self._destroy[kind](thing)
                    return

    # -- bytes ------------------------------------------------------------------------------------

    def buffer(self, content: bytes | int, *, shift: int = 0) -> HostBuffer:
        """Return host memory that holds `content`, or as many bytes of 0; guarded, kept alive."""
        buffer = HostBuffer(content, shift=shift)
        self._buffers.append(buffer)
        return buffer

    def bytes(self, n_bytes: int) -> bytes:
        """Return random bytes."""
        return self.random.randbytes(n_bytes)

    # -- order ------------------------------------------------------------------------------------

    def done(self, stream: Stream) -> None:
        """Wait until a stream is done, which other checks are about."""
        prepared(self.subject.block_host_until_done(stream), "block_host_until_done")

    def gate(self, stream: Stream) -> Gate:
        """Hold a stream until the gate is opened, if streams of this device can be held."""
        gate, why_not = Gate(), None
        self._gates.append(gate)
        try:
            self.call_back(stream, gate.work)
        except (Blocked, Unsupported) as error:
            why_not = error
        gate.enqueued(why_not)
        return gate

    def call_back(self, stream: Stream, work: Work) -> None:
        """Have a stream call a function, which other checks are about.

        Raises:
            Unsupported: It is UNIMPLEMENTED.
            Blocked: It failed, or ended the process of an earlier check.
        """
        for call in _CALLBACK_CALLS & self.target.lost_calls.keys():
            raise Blocked(f"host_callback ended a process: see {self.target.lost_calls[call]}")
        prepared(self.subject.host_callback(stream, work), "host_callback")

    # -- the end ----------------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for all work, destroy what is left, look at the guards of all buffers.

        Raises:
            Deviation: The plugin wrote outside of a host buffer.
        """
        for gate in self._gates:
            gate.open()
        with suppress(Unsupported):
            self.subject.synchronize_all_activity()
        for kind in _ORDER:
            while self._made[kind]:
                self._destroy[kind](self._made[kind].pop())
        for buffer in self._buffers:
            buffer.check_guards()

    def _keep(self, kind: str, answer: Answer, what: str) -> Any:
        prepared(answer, what)
        if answer.value is None:
            raise Blocked(f"{what} said OK and gave nothing")
        self._made[kind].append(answer.value)
        return answer.value


def prepared(answer: Answer, what: str) -> None:
    """Go on where a step that the check only prepares with has worked.

    Raises:
        Unsupported: It is UNIMPLEMENTED.
        Blocked: It failed; names the check that is about it.
    """
    if answer.code == Code.UNIMPLEMENTED:
        raise Unsupported(f"{what} is UNIMPLEMENTED")
    if not answer.ok:
        see = _ABOUT.get(what.partition("(")[0])
        about = "" if see is None else f": see {see}"
        raise Blocked(f"{what} failed: {code_found(answer)}{about}")
