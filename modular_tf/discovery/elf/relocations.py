"""The relocations of a library: in which order the linker looks its symbols up."""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.discovery.elf.dynamic import DynamicSection
    from modular_tf.discovery.elf.image import Image

_WIDE = 64
_MAX_BYTES = 64 << 20  # TensorFlow's largest library has 40 MiB of them


def relocated_symbols(image: Image, dynamic: DynamicSection) -> Iterator[int]:
    """Yield the indices of symbols that relocations name, in the order of the linker.

    That is first the table of data, then that of functions, if all is bound on loading. Only 64 bit
    libraries with addends are read, as x86-64 and aarch64 have them; of others none is known.

    Raises:
        ElfError: A table is damaged.
    """
    if image.layout.bits != _WIDE:
        return
    record = Struct(image.layout.order + "QQq")
    for address, size in dynamic.relocations:
        if not address or not size:
            continue
        if size > _MAX_BYTES:
            raise image.source.damaged(f"it claims {size} bytes of relocations")
        data = image.read_at(address, size - size % record.size, "the relocations")
        for _, info, _ in record.iter_unpack(data):
            if index := info >> 32:
                yield index
