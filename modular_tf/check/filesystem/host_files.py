"""Open files and regions as this package offers them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.abi.status_codes import Code
from modular_tf.check.call_journal import shown
from modular_tf.check.native.raw_filesystem import buffer_address

if TYPE_CHECKING:
    from modular_tf.check.answers import Answer
    from modular_tf.check.filesystem.host_subject import HostCaller
    from modular_tf.filesystem.files import RandomAccessFile, ReadOnlyMemoryRegion, WritableFile


class HostReader:
    """An open `RandomAccessFile`."""

    def __init__(self, caller: HostCaller, file: RandomAccessFile, name: str) -> None:
        self._caller = caller
        self._file = file
        self._name = name

    def read(self, offset: int, n: int) -> Answer:
        """Read; fewer than n bytes are the end of the file, which is code OUT_OF_RANGE here."""
        answer = self._caller.ask(
            "read",
            f"{self._name}, offset={offset}, n={n}",
            lambda: self._file.read(offset, n),
        )
        value = answer.value or b""
        if answer.ok and len(value) < n:
            message = f"{len(value)} bytes up to the end of the file"
            return replace(answer, code=int(Code.OUT_OF_RANGE), message=message, value=value)
        return replace(answer, value=value)

    def close(self) -> None:
        """Close it; a second call does nothing."""
        self._file.close()


class HostWriter:
    """An open `WritableFile`."""

    def __init__(self, caller: HostCaller, file: WritableFile, name: str) -> None:
        self._caller = caller
        self._file = file
        self._name = name

    def append(self, data: bytes) -> Answer:
        """Append all of these bytes."""
        arguments = f"{self._name}, {shown(data)}"
        return self._caller.ask("append", arguments, lambda: self._file.append(data))

    def tell(self) -> Answer:
        """Value: the position."""
        return self._ask("tell")

    def flush(self) -> Answer:
        """Pass what is buffered on."""
        return self._ask("flush")

    def sync(self) -> Answer:
        """Write what is buffered to the store."""
        return self._ask("sync")

    def close(self) -> Answer:
        """Close and clean up."""
        return self._ask("close")

    def cleanup(self) -> None:
        """Close where it is open."""
        self._ask("close")

    def _ask(self, slot: str) -> Answer:
        operation: Any = getattr(self._file, slot)
        return self._caller.ask(slot, self._name, operation)


class HostRegion:
    """An open `ReadOnlyMemoryRegion`."""

    def __init__(self, caller: HostCaller, region: ReadOnlyMemoryRegion, name: str) -> None:
        self._caller = caller
        self._region = region
        self._name = name

    def address(self) -> int:
        """Return where the memory lies; 0 for an empty one."""
        return buffer_address(self._region.view()) if len(self._region) else 0

    def length(self) -> int:
        """Return its bytes."""
        return len(self._region)

    def content(self) -> bytes:
        """Copy the bytes."""
        return bytes(self._region.view())

    def close(self) -> None:
        """Give it up; a second call does nothing."""
        self._region.close()
