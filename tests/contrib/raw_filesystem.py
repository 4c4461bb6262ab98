"""A filesystem plugin called slot by slot, as a careful host would, in a child process."""

from __future__ import annotations

import ctypes
import os
from itertools import count
from typing import TYPE_CHECKING, Any

from tests.contrib.filesystem_tables import (
    FilesystemOps,
    Handle,
    PluginInfo,
    RandomAccessFileOps,
    RegionOps,
    Statistics,
    WritableFileOps,
)
from tests.contrib.status_calls import Runtime

if TYPE_CHECKING:
    from tests.contrib.outcome import Outcome

CANARY = b"\xa5" * 64


class RawFilesystem:
    """One registration of a plugin. Each method is one slot and says what it came to.

    The tables are copied and then handed back to the plugin's allocator, so that a plugin which
    went on using them would fall over.
    """

    def __init__(self, runtime: str, plugin: str, scheme: str) -> None:
        self._runtime = Runtime(runtime)
        info = PluginInfo()
        ctypes.CDLL(plugin, mode=os.RTLD_NOW).TF_InitPlugin(ctypes.byref(info))
        self._free = info.free
        self.schemes = [info.ops[i].scheme.decode() for i in range(info.num_schemes)]
        self._sizes: list[tuple[int, ...]] = []
        self._tables: dict[str, tuple[Any, ...]] = {}
        for i in range(info.num_schemes):
            self._adopt(info.ops[i])
        self._free(ctypes.cast(info.ops, ctypes.c_void_p))
        self._ops, self._reader, self._writer, self._region = self._tables[scheme]
        self._handle = Handle()
        self._open: dict[int, Any] = {}
        self._numbers = count(1)
        self.start = self._status_call(self._ops.init, ctypes.byref(self._handle))

    def _adopt(self, ops: Any) -> None:
        kinds = (FilesystemOps, RandomAccessFileOps, WritableFileOps, RegionOps)
        pointers = (ops.filesystem, ops.reader, ops.writer, ops.region)
        self._sizes.append((ops.filesystem_size, ops.reader_size, ops.writer_size, ops.region_size))
        copies = tuple(
            kind.from_buffer_copy(ctypes.string_at(pointer, ctypes.sizeof(kind)))
            for kind, pointer in zip(kinds, pointers, strict=True)
        )
        self._tables[ops.scheme.decode()] = copies
        for kind, pointer in zip(kinds, pointers, strict=True):
            ctypes.memset(pointer, 0xDB, ctypes.sizeof(kind))
            self._free(ctypes.cast(pointer, ctypes.c_void_p))
        self._free(_address(ops, "scheme"))

    def facts(self) -> dict[str, Any]:
        """Schemes, sizes of the tables, and which slots are NULL."""
        names = [name for name, _ in FilesystemOps._fields_]
        return {
            "schemes": self.schemes,
            "sizes": self._sizes,
            "null": [name for name in names if not getattr(self._ops, name)],
        }

    # -- names ------------------------------------------------------------------------------------

    def translate(self, uri: str) -> str:
        """The path that a slot gets; without the slot, the URI as it is."""
        if not self._ops.translate_name:
            return uri
        text = self._ops.translate_name(ctypes.byref(self._handle), os.fsencode(uri))
        return os.fsdecode(self._take_text(text))

    def call(self, slot: str, *uris: str) -> Outcome:
        """A slot that takes paths and gives a status, and perhaps a number."""
        paths = [os.fsencode(self.translate(uri)) for uri in uris]
        return self._status_call(getattr(self._ops, slot), ctypes.byref(self._handle), *paths)

    def delete_recursively(self, uri: str) -> Outcome:
        """The value is (undeleted files, undeleted directories)."""
        files, directories = ctypes.c_uint64(77), ctypes.c_uint64(77)
        outcome = self._status_call(
            self._ops.delete_recursively,
            ctypes.byref(self._handle),
            os.fsencode(self.translate(uri)),
            ctypes.byref(files),
            ctypes.byref(directories),
        )
        return outcome._replace(value=(files.value, directories.value))

    def stat(self, uri: str) -> Outcome:
        """The value is (length, mtime in ns, the byte of is_directory)."""
        facts = Statistics(-7, -7, 7)
        outcome = self._status_call(
            self._ops.stat,
            ctypes.byref(self._handle),
            os.fsencode(self.translate(uri)),
            ctypes.byref(facts),
        )
        return outcome._replace(value=(facts.length, facts.mtime_nsec, facts.is_directory))

    def get_children(self, uri: str) -> Outcome:
        """The value is (the count that was returned, names)."""
        return self._names(self._ops.get_children, self.translate(uri))

    def get_matching_paths(self, pattern: str) -> Outcome:
        """The value is (the count that was returned, paths). Patterns are not translated."""
        return self._names(self._ops.get_matching_paths, pattern)

    def _names(self, slot: Any, argument: str) -> Outcome:
        entries = ctypes.POINTER(ctypes.c_void_p)()
        outcome = self._status_call(
            slot, ctypes.byref(self._handle), os.fsencode(argument), ctypes.byref(entries)
        )
        number = outcome.value
        names = [os.fsdecode(self._take_text(entries[i])) for i in range(max(number, 0))]
        if number >= 0:
            self._free(ctypes.cast(entries, ctypes.c_void_p))
        return outcome._replace(value=(number, names))

    def paths_exist(self, uris: list[str], *, ask_each: bool) -> tuple[bool, list[int]]:
        """The answer for all, and the code of each where they were asked for."""
        paths = (ctypes.c_char_p * len(uris))(*[os.fsencode(self.translate(u)) for u in uris])
        statuses = [self._runtime.new() for _ in uris]
        for status in statuses:
            self._runtime.set(status, 2, b"untouched")
        array = (ctypes.c_void_p * len(uris))(*statuses) if ask_each else None
        every = self._ops.paths_exist(ctypes.byref(self._handle), paths, len(uris), array)
        codes = [self._runtime.code(status) for status in statuses]
        for status in statuses:
            self._runtime.delete(status)
        return every, codes if ask_each else []

    # -- files ------------------------------------------------------------------------------------

    def open(self, slot: str, uri: str) -> Outcome:
        """The value is a number for the open file, or None when the handle was left alone."""
        handle = Handle()
        outcome = self._status_call(
            getattr(self._ops, slot),
            ctypes.byref(self._handle),
            os.fsencode(self.translate(uri)),
            ctypes.byref(handle),
        )
        if not handle.pointer:
            return outcome._replace(value=None)
        number = next(self._numbers)
        self._open[number] = handle
        return outcome._replace(value=number)

    def read(self, file: int, offset: int, n: int) -> Outcome:
        """The value is (returned count, the bytes of that count). Fails on a write past `n`."""
        buffer = ctypes.create_string_buffer(bytes(n) + CANARY, n + len(CANARY))
        outcome = self._status_call(
            self._reader.read, ctypes.byref(self._open[file]), offset, n, ctypes.byref(buffer)
        )
        if buffer.raw[n:] != CANARY:
            raise AssertionError("the plugin wrote past the end of the buffer")
        return outcome._replace(value=(outcome.value, buffer.raw[: max(outcome.value, 0)]))

    def append(self, file: int, data: bytes) -> Outcome:
        """Append all of `data`."""
        return self._status_call(
            self._writer.append, ctypes.byref(self._open[file]), data, len(data)
        )

    def writer(self, slot: str, file: int) -> Outcome:
        """tell, flush, sync or close."""
        return self._status_call(getattr(self._writer, slot), ctypes.byref(self._open[file]))

    def region(self, file: int) -> tuple[int, bytes]:
        """Address and bytes of a region."""
        handle = ctypes.byref(self._open[file])
        address = self._region.data(handle)
        return address, ctypes.string_at(address, self._region.length(handle))

    def cleanup(self, kind: str, file: int) -> None:
        """Release a "reader", "writer" or "region"."""
        table = {"reader": self._reader, "writer": self._writer, "region": self._region}[kind]
        table.cleanup(ctypes.byref(self._open.pop(file)))

    def end(self) -> None:
        """Clean the filesystem up and start a new one."""
        self._ops.cleanup(ctypes.byref(self._handle))
        self._handle = Handle()
        self.start = self._status_call(self._ops.init, ctypes.byref(self._handle))

    # -- calls ------------------------------------------------------------------------------------

    def faulty(self, faults: list[str], method: str, *arguments: Any) -> Outcome:
        """A method of this class, while the system fails as kernel_faults.c says; see there."""
        library = ctypes.CDLL(None)
        library.kernel_faults_begin("\n".join(faults).encode())
        try:
            outcome: Outcome = getattr(self, method)(*arguments)
        finally:
            library.kernel_faults_end()
        return outcome

    def _take_text(self, address: int) -> bytes:
        text = ctypes.string_at(address)
        self._free(address)
        return text

    def _status_call(self, slot: Any, *arguments: Any) -> Outcome:
        with self._runtime.status() as status:
            return self._runtime.outcome(status, value=slot(*arguments, status))


def _address(structure: Any, field: str) -> int | None:
    """The pointer in a c_char_p field, which ctypes would turn into bytes."""
    offset = getattr(type(structure), field).offset
    return ctypes.c_void_p.from_address(ctypes.addressof(structure) + offset).value
