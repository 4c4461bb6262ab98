"""A copy of a library in anonymous memory whose needs name the host runtime.

A plugin that needs `libtensorflow_framework.so.2` can be given the host runtime only under another
name: a library of that very name would be handed to a later `import tensorflow` too. The file on
disk stays untouched; in the copy, one string or one offset differs.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING

from modular_tf.errors import PluginError
from modular_tf.native.runtime_library import SONAME

if TYPE_CHECKING:
    from modular_tf.discovery.elf import ElfFile

_DT_NEEDED, _DT_STRTAB = 1, 5
_ENTRY = struct.Struct("<qQ")

# glibc tells libraries apart by path, and the path of a copy is its descriptor's number: were one
# closed and the number used again, the next plugin would silently be the previous one.
_kept_open: list[int] = []


def keep_in_memory(data: bytes, name: str) -> str:
    """Put bytes into anonymous memory for the life of the process; return a path to them."""
    fd = _new_memory(name)
    with open(fd, "wb", closefd=False) as target:
        target.write(data)
    return _keep(fd)


def copy_for_host(elf: ElfFile, stand_ins: frozenset[str]) -> str:
    """Copy a library so that its needs of `stand_ins` lead to the host runtime.

    Args:
        elf: The library, open.
        stand_ins: Names of libraries in whose place the host runtime stands.

    Returns:
        A path that `dlopen` takes, valid for the life of the process.

    Raises:
        PluginError: A name cannot be changed in place (LD-053).
    """
    patches = _patches(elf, stand_ins)
    fd = _new_memory(os.path.basename(elf.path))
    try:
        _copy_file(elf.path, fd)
        for offset, data in patches:
            os.pwrite(fd, data, offset)
    except BaseException:
        os.close(fd)
        raise
    return _keep(fd)


def _new_memory(name: str) -> int:
    # The kernel takes 249 bytes of name. The name is for people who look at the process's maps.
    shown = os.fsdecode(os.fsencode(name)[:200])
    return os.memfd_create(shown, os.MFD_CLOEXEC)


def _keep(fd: int) -> str:
    _kept_open.append(fd)
    return f"/proc/self/fd/{fd}"


def _copy_file(path: str, target: int) -> None:
    source = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while os.sendfile(target, source, None, 1 << 30):
            pass
    finally:
        os.close(source)


def _patches(elf: ElfFile, stand_ins: frozenset[str]) -> list[tuple[int, bytes]]:
    """Return file offsets and the bytes to put there."""
    entries = list(_dynamic_entries(elf))
    table = next(value for _, tag, value in entries if tag == _DT_STRTAB)
    needs = [(at, value, elf.dynamic.strings.text(value)) for at, tag, value in entries
             if tag == _DT_NEEDED]  # fmt: skip
    versioned = {need.library for need in elf.version_needs()}
    harmless = next((value for _, value, name in needs if name not in stand_ins), None)
    patches = []
    for at, value, name in needs:
        if name not in stand_ins:
            continue
        if len(name) >= len(SONAME):
            # Versions are required of a library by the same string, so they follow.
            offset = elf.image.offset_of(table + value, len(name), "a name")
            patches.append((offset, SONAME.encode().ljust(len(name), b"\0")))
        elif harmless is not None and name not in versioned:
            # Needing another library twice does nothing; the stub brings the host runtime.
            patches.append((at, _ENTRY.pack(_DT_NEEDED, harmless)))
        else:
            raise PluginError(
                f"{elf.path}: its need of {name!r} cannot be led to the host runtime: the name is"
                f" too short to hold {SONAME!r} (rule LD-053)",
                plugin=elf.path,
                rule="LD-053",
            )
    return patches


def _dynamic_entries(elf: ElfFile) -> list[tuple[int, int, int]]:
    """Return file offset, tag and value of each entry up to the end mark."""
    if elf.image.dynamic is None:
        return []
    offset, size = elf.image.dynamic
    data = elf.image.source.read(offset, size - size % _ENTRY.size, "the dynamic section")
    found = []
    for index, (tag, value) in enumerate(_ENTRY.iter_unpack(data)):
        if tag == 0:
            break
        found.append((offset + index * _ENTRY.size, tag, value))
    return found
