"""A copy of a library in anonymous memory, with changed names for the dynamic linker.

A plugin that needs `libtensorflow_framework.so.2` can be given the host runtime only under another
name: a library of that very name would be handed to a later `import tensorflow` too. And a search
path may lead to the current directory, where anybody's files may be when the library is mapped. The
file on disk stays untouched.

TensorFlow's libraries define symbol versions, by release and library "tensorflow" or "VERS_1.0",
and a library that was linked with one requires them. The host runtime stands in for all of these
libraries, so in the copy the requirements of versions of TensorFlow's libraries are taken out.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import struct
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING

from modular_tf.concurrency.owned_file import open_owned, owned
from modular_tf.discovery.elf import ElfFile, dynamic
from modular_tf.discovery.file_identity import OPEN_FLAGS, FileIdentity, sha256_of
from modular_tf.discovery.linking.host_exports import REPLACED_SONAMES
from modular_tf.discovery.linking.system_libraries import is_relative
from modular_tf.errors import PluginError
from modular_tf.native.runtime_library import SONAME
from modular_tf.rules import Violation
from modular_tf.rules.loading import MAPPABLE, SEARCH_PATH_CHANGEABLE
from modular_tf.rules.trust import file_changed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import FileIO

    from modular_tf.discovery.file_identity import SeenFile

DESCRIPTORS = "/proc/self/fd"
_FIRST_FREE = 3  # after the standard streams, which the application may have closed

_numbers = itertools.count(1)


class OpenDescriptor:
    """An open file, which belongs to this object, and a path by which the linker can map it.

    The path `mapped_as` holds in this process alone. No other file ever had it here, so the
    descriptor can be closed once the file is mapped.
    """

    def __init__(self, file: FileIO) -> None:
        self._file = file
        if file.fileno() < _FIRST_FREE:
            with file:
                number = file.fileno()
                self._file = owned(partial(fcntl.fcntl, number, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE))
        self.fd = self._number = self._file.fileno()
        self.mapped_as = _unique_path(self.fd)

    @property
    def is_open(self) -> bool:
        """Whether the descriptor is open; one that is kept always is."""
        return not self._file.closed or self.fd != self._number

    def keep(self) -> None:
        """Keep the file open for the life of the process, with another descriptor and path."""
        if self.fd == self._number:
            self.fd = fcntl.fcntl(self.fd, fcntl.F_DUPFD_CLOEXEC, _FIRST_FREE)
            self.mapped_as = _unique_path(self.fd)

    def close(self) -> None:
        """Close the descriptor unless it is kept; a second call does nothing."""
        self._file.close()


class OpenedFile(OpenDescriptor):
    """One file, open for reading; `seen` is the file when it was checked, None if it was not."""

    def __init__(self, path: str, seen: SeenFile | None = None) -> None:
        super().__init__(open_owned(path, OPEN_FLAGS))
        self.path = path  # for people
        self.identity = FileIdentity.of(os.fstat(self.fd))
        # expected of its bytes; None if it is not needed yet
        self.known_sha256 = None if seen is None else seen.sha256
        # Whether only a copy can be sure to be what was checked: another file has its place, maybe
        # with the same bytes; or it had changed so shortly before the check that another change may
        # have left the same times.
        self.must_be_copied = False
        if seen is None:
            return
        is_same = seen.identity == self.identity
        if not is_same and seen.sha256 is None:
            self.close()
            raise changed_since(path)
        try:
            if seen.sha256 is not None and not (is_same and seen.is_settled(time_ns())):
                self.must_be_copied = not os.fstatvfs(self.fd).f_flag & os.ST_RDONLY
                if not self.must_be_copied:
                    self.sha256()
        except BaseException:
            self.close()
            raise

    def require_unwritten(self) -> None:
        """Raise LD-082 if the open file was written to; called right before it is mapped."""
        now = FileIdentity.of(os.fstat(self.fd))
        if (now.size, now.mtime_ns) != (self.identity.size, self.identity.mtime_ns):
            raise changed_since(self.path)

    def sha256(self) -> str:
        """Return the hash of the bytes; raise LD-082 if that is not what was checked."""
        found = sha256_of(self.fd)
        require_same(self.path, found, self.known_sha256)
        self.known_sha256 = found
        return found

    def may_be(self, sha256: str | None) -> bool:
        """Return whether the bytes may have this hash; True if their hash is unknown."""
        return None in (sha256, self.known_sha256) or sha256 == self.known_sha256


def require_same(path: str, sha256: str, expected: str | None) -> None:
    """Raise LD-082 if a hash differs from the expected one, if that is known."""
    if expected is not None and sha256 != expected:
        raise changed_since(path)


def changed_since(path: str) -> PluginError:
    """Return the error for a file that is not the one that was checked."""
    return file_changed(path).error(PluginError, plugin=path)


def _unique_path(fd: int) -> str:
    """Return a path to an open file that was never used in this process before.

    glibc distinguishes libraries by path. Were the number of a closed descriptor used again, the
    next plugin would silently be the previous one. To the kernel `//` and `/./` are one slash, so
    a running number can be written with them.
    """
    spelling = "".join("./" if bit == "1" else "/" for bit in f"{next(_numbers):b}")
    return f"{DESCRIPTORS}/{spelling}{fd}"


# The dynamic linker passes over entries of the operating system that it does not know.
_DT_UNUSED = 0x6FFF0000
_HALF, _WORD = struct.Struct("<H"), struct.Struct("<I")
_TO_NEXT_RECORD, _MOST_TO_NEXT = 12, (1 << 32) - 1
_ANY_VERSION = 1

_SEALS = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL


def in_memory(data: bytes, name: str) -> OpenDescriptor:
    """Return an anonymous file in memory with these bytes; it lasts while it is open or mapped."""
    memory = _new_memory(name)
    with open(memory.fd, "wb", closefd=False) as target:
        target.write(data)
    fcntl.fcntl(memory.fd, fcntl.F_ADD_SEALS, _SEALS)
    return memory


def copy_for_host(file: OpenedFile, host_name: str = SONAME) -> OpenDescriptor:
    """Return a sealed copy of a library that needs the host runtime instead of TensorFlow's.

    Its search path has no relative directories. A library `host_name` replaces those of
    `REPLACED_SONAMES`.
    """
    if os.fstatvfs(file.fd).f_flag & os.ST_NOEXEC:  # a copy could always be mapped
        message = f"{file.path}: its file system is mounted so that nothing runs from it, noexec"
        raise Violation(MAPPABLE, message, path=file.path).error(PluginError, plugin=file.path)
    copy = _new_memory(os.path.basename(file.path))
    try:
        copied = 0
        while n_bytes := os.sendfile(copy.fd, file.fd, copied, 1 << 30):
            copied += n_bytes
        if file.known_sha256 is not None:
            require_same(file.path, sha256_of(copy.fd), file.known_sha256)
        with ElfFile(copy.mapped_as) as elf:
            patches = _patches(elf, file.path, host_name)
        for offset, data in patches:
            os.pwrite(copy.fd, data, offset)
        fcntl.fcntl(copy.fd, fcntl.F_ADD_SEALS, _SEALS)
    except BaseException:
        copy.close()
        raise
    return copy


def _new_memory(name: str) -> OpenDescriptor:
    # The kernel takes 249 bytes of name. The name is for people who look at the process's maps.
    shown = os.fsdecode(os.fsencode(name)[:200])
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    return OpenDescriptor(owned(partial(os.memfd_create, shown, flags)))


def _patches(elf: ElfFile, path: str, host_name: str) -> list[tuple[int, bytes]]:
    """Return file offsets and the bytes to write there."""
    table = next(value for _, tag, value in elf.dynamic.entries if tag == dynamic.DT_STRTAB)
    of_needs: list[tuple[int, bytes]] = []
    of_paths: list[tuple[int, bytes]] = []
    for at, tag, value in elf.dynamic.entries:
        if tag == dynamic.DT_NEEDED:
            name = elf.dynamic.strings.text(value)
            if name not in REPLACED_SONAMES:
                continue
            if len(name) >= len(host_name):
                offset = elf.image.offset_of(table + value, len(name), "a name")
                of_needs.append((offset, host_name.encode().ljust(len(name), b"\0")))
            else:  # the stub brings the host runtime
                of_needs.append((at, dynamic.ENTRY.pack(_DT_UNUSED, 0)))
        elif tag in (dynamic.DT_RPATH, dynamic.DT_RUNPATH):
            searched = elf.dynamic.strings.text(value).encode("utf-8", "surrogateescape")
            changed = without_relative(searched) if searched else searched
            if changed == searched:
                continue
            if elf.image.read_at(table + value - 1, 1, "a string") != b"\0":
                message = (
                    f"{path}: its search path {os.fsdecode(searched)!r} leads to the current"
                    " directory, and is the end of another string that cannot be changed"
                )
                refusal = Violation(SEARCH_PATH_CHANGEABLE, message, path=path)
                raise refusal.error(PluginError, plugin=path)
            offset = elf.image.offset_of(table + value, len(searched), "a search path")
            of_paths.append((offset, changed))
    return [*of_needs, *_version_patches(elf), *of_paths]


def _version_patches(elf: ElfFile) -> Iterator[tuple[int, bytes]]:
    """Take out the records of TensorFlow's libraries, and the versions of their symbols."""
    records = elf.version_records()
    kept = [record for record in records if record.library not in REPLACED_SONAMES]
    if len(kept) == len(records):
        return
    numbers = {need.number for record in records for need in record.needs} - {
        need.number for record in kept for need in record.needs
    }
    if kept:
        instead = {dynamic.DT_VERNEED: kept[0].address, dynamic.DT_VERNEEDNUM: len(kept)}
        unused: set[int] = set()
    else:
        instead, unused = {}, {dynamic.DT_VERNEED, dynamic.DT_VERNEEDNUM}
        if not elf.dynamic.version_definitions_address:
            # The dynamic linker reads the indices without checking whether it made the versions.
            unused.add(dynamic.DT_VERSYM)
    for at, tag, _ in elf.dynamic.entries:
        if tag in unused:
            yield at, dynamic.ENTRY.pack(_DT_UNUSED, 0)
        elif tag in instead:
            yield at, dynamic.ENTRY.pack(tag, instead[tag])
    for record, following in zip(kept, [*kept, None][1:], strict=True):
        distance = following.address - record.address if following else 0
        if distance > _MOST_TO_NEXT:
            raise elf.image.source.damaged("its records of symbol versions are too far apart")
        place = record.address + _TO_NEXT_RECORD
        yield elf.image.offset_of(place, _WORD.size, "a symbol version"), _WORD.pack(distance)
    place = elf.dynamic.version_indices_address
    for index, number in enumerate(elf.version_indices()):
        if number in numbers:
            offset = elf.image.offset_of(place + index * _HALF.size, _HALF.size, "a version index")
            yield offset, _HALF.pack(_ANY_VERSION)


def without_relative(search_path: bytes) -> bytes:
    """Return a search path of the same length without relative directories.

    Libraries that were found in the current directory are mapped first and are not searched for
    again. The length stays, since the string is changed in place: an empty directory is joined with
    the next or the last, and any other one is changed to begin at the root directory.
    """
    text = search_path.decode("latin-1")  # a character for each byte
    start = 0
    while start <= len(text):
        end = f"{text}:".index(":", start)
        if start == end:
            colon = end if end < len(text) else end - 1
            text = f"{text[:colon]}/{text[colon + 1 :]}"
            end = f"{text}:".index(":", start)
        elif is_relative(text[start:end]):
            text = f"{text[:start]}/{text[start + 1 :]}"
        start = end + 1
    return text.encode("latin-1")
