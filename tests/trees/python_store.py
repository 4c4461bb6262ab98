"""A filesystem in Python, as users register one: fsspec's in memory, which can fail on purpose."""

from __future__ import annotations

from typing import Any

from fsspec.implementations.memory import MemoryFileSystem

_BROKEN_AT = 1 << 20


class FailingMemory(MemoryFileSystem):  # type: ignore[misc]
    """Files in memory; some names fail: with "refused" to open, with "breaks" in the middle."""

    store: dict[str, Any] = {}  # noqa: RUF012  (of the class, as its parent has it)
    pseudo_dirs = [""]  # noqa: RUF012
    cachable = False

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **options: Any
    ) -> bytes:
        if "refused" in path:
            raise PermissionError(13, "this file is refused", path)
        if "breaks" in path and (end is None or end > _BROKEN_AT):
            raise ConnectionResetError(104, "the connection was reset", path)
        return bytes(super().cat_file(path, start, end, **options))

    def cp_file(self, path1: str, path2: str, **options: Any) -> None:
        if self.isdir(path1):
            super().cp_file(path1, path2, **options)
        else:
            self.pipe_file(path2, self.cat_file(path1))


store = FailingMemory()
