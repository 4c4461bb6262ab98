"""Host memory of a check, for copies, between two guards that must not change."""

from __future__ import annotations

from modular_tf.check.expectation import Deviation
from modular_tf.native.fresh_host_memory import address_of, fresh_host_memory

_ALIGNMENT = 64
_GUARD_BYTES = 64
_GUARD = 0xA7


class HostBuffer:
    """Bytes of the host's, of which a copy reads or writes some. [any thread].

    It must be kept until the stream has passed every copy that uses it.

    Attributes:
        view: The bytes, writable, without the guards.
        address: Where they lie: a multiple of 64, and `shift` more.
    """

    __slots__ = ("_block", "_start", "address", "view")

    def __init__(self, content: bytes | int, *, shift: int = 0) -> None:
        """Make a buffer.

        Args:
            content: The bytes, or how many bytes of 0.
            shift: How far from an aligned address it begins, less than 64.
        """
        size = content if isinstance(content, int) else len(content)
        self._block = fresh_host_memory(size + 2 * _GUARD_BYTES + 2 * _ALIGNMENT)
        base = address_of(self._block)
        self._start = _GUARD_BYTES + -(base + _GUARD_BYTES) % _ALIGNMENT + shift
        self.address = base + self._start
        self.view = self._block[self._start : self._start + size]
        for start, end in self._guards():
            self._block[start:end] = bytes((_GUARD,)) * (end - start)
        if isinstance(content, bytes):
            self.view[:] = content

    def _guards(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return where the guard in front and the guard behind begin and end."""
        return (0, self._start), (self._start + len(self.view), len(self._block))

    def __len__(self) -> int:
        return len(self.view)

    def content(self) -> bytes:
        """Return a copy of the bytes."""
        return bytes(self.view)

    def check_guards(self) -> None:
        """Demand that nothing was written in front of the buffer or behind it.

        Raises:
            Deviation: Something was.
        """
        for name, (start, end) in zip(("in front of", "behind"), self._guards(), strict=True):
            guard = bytes(self._block[start:end])
            if guard.strip(bytes((_GUARD,))):
                raise Deviation(
                    f"the plugin wrote {name} a host buffer of {len(self.view)} bytes",
                    expected="only the buffer's own bytes are written",
                    found=guard.hex(),
                )
