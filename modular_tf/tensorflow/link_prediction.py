"""What the linker says where TensorFlow opens a library, told from the bytes alone."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.link_check import check_link
from modular_tf.errors import ElfError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from modular_tf.discovery.linking.link_check import LinkCheck, MissingSymbol
    from modular_tf.discovery.linking.link_scope import ProcessScope
    from modular_tf.tensorflow.installation import TensorFlowInstallation


class LinkFailure(NamedTuple):
    """Why a library cannot be opened.

    Attributes:
        message: In the linker's words, where it says something.
        ends_process: Whether the linker is killed by a signal: it maps what the file lacks.
    """

    message: str
    ends_process: bool = False


def why_not_linked(
    path: str, tensorflow: TensorFlowInstallation, process: ProcessScope
) -> LinkFailure | None:
    """Return why TensorFlow cannot open a library; None where it can.

    Args:
        path: The library.
        tensorflow: What it is linked with.
        process: What this process and this system offer.
    """
    if os.path.isdir(path):
        return LinkFailure(f"{path}: cannot read file data: Is a directory")
    try:
        with ElfFile(path) as elf:
            elf.require_shared_object()
            message = _why_not_linked(elf, tensorflow, process)
    except ElfError as error:
        if _CUT_OFF.search(str(error)):
            return LinkFailure(str(error), ends_process=True)
        return LinkFailure(_words_of(path, error))
    return None if message is None else LinkFailure(message)


def _why_not_linked(
    elf: ElfFile, tensorflow: TensorFlowInstallation, process: ProcessScope
) -> str | None:
    found = _linked(elf, tensorflow, process)
    if found.missing_libraries:
        name = found.missing_libraries[0].name
        return f"{name}: cannot open shared object file: No such file or directory"
    if (unversioned := _missing_version(elf, tensorflow)) is not None:
        return unversioned
    # The linker binds what is needed before what needs it.
    for symbol in found.missing_symbols:
        path = next((lib.path for lib in found.libraries if lib.name == symbol.needed_by), None)
        if path is not None:
            with ElfFile(path) as companion:
                return _undefined(companion, found.missing_symbols)
    if found.missing_symbols:
        return _undefined(elf, found.missing_symbols)
    return next((problem.message for problem in found.problems if problem.is_error), None)


def _linked(elf: ElfFile, tensorflow: TensorFlowInstallation, process: ProcessScope) -> LinkCheck:
    """Return the check of a library, which sees TensorFlow as far as it or its companions ask."""
    first = check_link(elf, tensorflow.exports_to(elf.dynamic.needed), process)
    if tensorflow.is_global or not first.missing_symbols:
        return first
    needed = list(elf.dynamic.needed)
    for library in first.libraries:
        with ElfFile(library.path) as companion:
            needed += companion.dynamic.needed
    return check_link(elf, tensorflow.exports_to(needed), process)


def _missing_version(elf: ElfFile, tensorflow: TensorFlowInstallation) -> str | None:
    offered = {library.dynamic.soname: library for library in tensorflow.opened}
    for need in elf.version_needs():
        provider = offered.get(need.library)
        defined = frozenset() if provider is None else provider.version_definitions()
        if provider is not None and defined and need.version not in defined and not need.weak:
            words = f"version `{need.version}' not found (required by {elf.path})"
            return f"{provider.path}: {words}"
    return None


def _undefined(elf: ElfFile, missing: Iterable[MissingSymbol]) -> str:
    own = {symbol.name for symbol in missing if symbol.needed_by == os.path.basename(elf.path)}
    return f"{elf.path}: undefined symbol: {_first_of(elf, own)}"


def _first_of(elf: ElfFile, missing: Collection[str]) -> str:
    """Return the symbol that the linker names: the first that a relocation asks for."""
    return next((name for name in elf.relocated() if name in missing), min(missing, default=""))


def _words_of(path: str, error: ElfError) -> str:
    """Return what the linker says of a file that is no library."""
    if isinstance(error.__cause__, OSError):
        return f"{path}: cannot open shared object file: {error.__cause__.strerror}"
    if not os.path.isfile(path):
        return str(error)  # a FIFO, say, which is not to be opened
    size = os.path.getsize(path)
    with open(path, "rb") as stream:
        is_elf = stream.read(4) == b"\x7fELF"
    if not is_elf and size >= _HEADER_BYTES:
        return f"{path}: invalid ELF header"
    return f"{path}: file too short" if not is_elf or "byte" in str(error) else str(error)


_HEADER_BYTES = 64
_CUT_OFF = re.compile(r"a segment ends at byte \d+, the file has \d+")
