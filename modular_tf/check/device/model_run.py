"""The same steps on a device and on its model, and what of the device the model rules out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from modular_tf.check.answers import code_found
from modular_tf.check.device.host_buffer import HostBuffer
from modular_tf.check.device.model import DeviceModel
from modular_tf.check.expectation import Deviation
from modular_tf.device.streams.event import EventStatus

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.check.device.model import Place
    from modular_tf.check.device.subject import Answer, DeviceSubject, Memory


class ModelRun:
    """A device and its model. [one thread]

    Attributes:
        model: The model.
        findings: What the device did that the model rules out, in words.
        steps: What was done, in words.
    """

    def __init__(self, subject: DeviceSubject) -> None:
        self.model = DeviceModel()
        self.findings: list[str] = []
        self.steps: list[str] = []
        self._subject = subject
        self._things: dict[int, Any] = {}
        self._reads: dict[int, HostBuffer] = {}
        self._buffers: list[HostBuffer] = []

    # -- things -----------------------------------------------------------------------------------

    def allocate(self, size: int) -> int | None:
        """Allocate memory; None where there is none."""
        answer = self._subject.allocate(size)
        return None if answer.value is None else self._keep(self.model.allocate(size), answer)

    def deallocate(self, memory: int) -> None:
        """Give memory back, where nothing uses it any more."""
        if self.model.is_unused(memory):
            self.steps.append(f"deallocate {memory}")
            self.model.deallocate(memory)
            self._subject.deallocate(self._things.pop(memory))

    def create_stream(self) -> int:
        """Create a stream."""
        return self._keep(self.model.create_stream(), self._subject.create_stream())

    def destroy_stream(self, stream: int) -> None:
        """Destroy a stream, whatever it holds."""
        self.steps.append(f"destroy stream {stream}")
        self.model.destroy_stream(stream)
        self._subject.destroy_stream(self._things.pop(stream))

    def create_event(self) -> int:
        """Create an event."""
        return self._keep(self.model.create_event(), self._subject.create_event())

    def destroy_event(self, event: int) -> None:
        """Destroy an event, even if a stream waits for it."""
        self.steps.append(f"destroy event {event}")
        self.model.destroy_event(event)
        self._subject.destroy_event(self._things.pop(event))

    def _keep(self, number: int, answer: Answer) -> int:
        self._worked(answer, f"make {number}")
        self._things[number] = answer.value
        return number

    # -- work -------------------------------------------------------------------------------------

    def write(self, stream: int | None, target: Place, data: bytes) -> None:
        """Copy from the host."""
        source = self._buffer(data)
        memory = self._memory(target)
        self._do(
            f"write {data.hex()} to {_shown(target)}, {_where(stream)}",
            stream,
            lambda: self._subject.sync_memcpy_htod(memory, source, target.size),
            lambda handle: self._subject.memcpy_htod(handle, memory, source, target.size),
        )
        self.model.write(stream, target, data)

    def fill(self, stream: int, target: Place, value: int) -> None:
        """Fill with a byte."""
        memory = self._memory(target)
        self._worked(
            self._subject.memset(self._things[stream], memory, value, target.size),
            f"fill {_shown(target)} with {value:#04x}, {_where(stream)}",
        )
        self.model.write(stream, target, bytes((value,)) * target.size)

    def copy(self, stream: int | None, target: Place, source: Place) -> None:
        """Copy on the device."""
        to, of = self._memory(target), self._memory(source)
        self._do(
            f"copy {_shown(source)} to {_shown(target)}, {_where(stream)}",
            stream,
            lambda: self._subject.sync_memcpy_dtod(to, of, source.size),
            lambda handle: self._subject.memcpy_dtod(handle, to, of, source.size),
        )
        self.model.copy(stream, target, source)

    def read(self, stream: int | None, source: Place) -> None:
        """Copy to the host; it is looked at as soon as it is known to be done."""
        target, memory = self._buffer(source.size), self._memory(source)
        self._do(
            f"read {_shown(source)}, {_where(stream)}",
            stream,
            lambda: self._subject.sync_memcpy_dtoh(target, memory, source.size),
            lambda handle: self._subject.memcpy_dtoh(handle, target, memory, source.size),
        )
        self._reads[self.model.read(stream, source)] = target
        self._look()

    def _do(
        self,
        step: str,
        stream: int | None,
        now: Callable[[], Answer],
        on: Callable[[Any], Answer],
    ) -> None:
        self._worked(now() if stream is None else on(self._things[stream]), step)

    def _memory(self, place: Place) -> Memory:
        memory: Memory = self._things[place.memory]
        return memory.part(place.offset, place.size)

    def _buffer(self, content: bytes | int) -> HostBuffer:
        buffer = HostBuffer(content)
        self._buffers.append(buffer)
        return buffer

    # -- order ------------------------------------------------------------------------------------

    def depend(self, dependent: int, other: int) -> None:
        """Let a stream wait for another."""
        handles = self._things[dependent], self._things[other]
        step = f"stream {dependent} waits for stream {other}"
        self._worked(self._subject.create_stream_dependency(*handles), step)
        self.model.depend(dependent, other)

    def record(self, stream: int, event: int) -> None:
        """Record an event."""
        handles = self._things[stream], self._things[event]
        step = f"record event {event} on stream {stream}"
        self._worked(self._subject.record_event(*handles), step)
        self.model.record(stream, event)

    def wait_for_event(self, stream: int, event: int) -> None:
        """Let a stream wait for an event."""
        handles = self._things[stream], self._things[event]
        step = f"stream {stream} waits for event {event}"
        self._worked(self._subject.wait_for_event(*handles), step)
        self.model.wait_for_event(stream, event)

    def poll(self, event: int) -> None:
        """Look whether an event is passed."""
        status = self._subject.get_event_status(self._things[event]).value
        self.steps.append(f"status of event {event}: {status}")
        if status == EventStatus.COMPLETE:
            self.model.passed_event(event)
            self._look()

    def block_for_event(self, event: int) -> None:
        """Wait for an event."""
        answer = self._subject.block_host_for_event(self._things[event])
        self._worked(answer, f"wait for event {event}")
        self.model.passed_event(event)
        self._look()

    def block_for_stream(self, stream: int) -> None:
        """Wait for a stream."""
        answer = self._subject.block_host_until_done(self._things[stream])
        self._worked(answer, f"wait for stream {stream}")
        self.model.passed_stream(stream)
        self._look()

    def synchronize(self) -> None:
        """Wait for all streams."""
        self._worked(self._subject.synchronize_all_activity(), "wait for all streams")
        self.model.passed_all()
        self._look()

    # -- findings ---------------------------------------------------------------------------------

    def _worked(self, answer: Answer, step: str) -> None:
        self.steps.append(step)
        if not answer.ok:
            self.findings.append(f"{step}: {code_found(answer)}")

    def _look(self) -> None:
        """Judge the reads that are known to be done by now."""
        for number in [number for number in self._reads if self.model.is_done(number)]:
            found = self._reads.pop(number).content()
            source = self.model.operations[number].source
            where = "" if source is None else f"read of {_shown(source)}: "
            self.findings += [where + one for one in self.model.mismatches(number, found)]

    def close(self) -> None:
        """Wait for all, look at all, destroy all."""
        self.synchronize()
        for number in self.model.streams:
            self.destroy_stream(number)
        for number in self.model.events:
            self.destroy_event(number)
        for number in list(self.model.sizes):
            self._subject.deallocate(self._things.pop(number))
        for buffer in self._buffers:
            try:
                buffer.check_guards()
            except Deviation as deviation:
                self.findings.append(deviation.message)


def _where(stream: int | None) -> str:
    return "now" if stream is None else f"on stream {stream}"


def _shown(place: Place) -> str:
    return f"{place.size} bytes of {place.memory} at {place.offset}"
