"""A library to map: its file, the path to map it by, and the names in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.linking.library_search import is_relative
from modular_tf.loading.origin_folder import origin_levels

if TYPE_CHECKING:
    from modular_tf.loading.opened_file import OpenedFile


class LinkNames(NamedTuple):
    """The names in a library that the dynamic linker reads.

    Attributes:
        soname: Its own name, None if it has none.
        needed: The names of the libraries that it needs.
        linked: The names of all libraries that come with it: those, and its filters
            (DT_AUXILIARY, DT_FILTER).
        search_path: Where to look for those, unexpanded.
        levels: As `origin_levels` has it.
    """

    soname: str | None
    needed: tuple[str, ...]
    linked: tuple[str, ...]
    search_path: tuple[str, ...]
    levels: int | None

    @classmethod
    def of(cls, path: str, file: str) -> LinkNames:
        """Return the names in a library.

        Args:
            path: A path to it.
            file: The file that it is.

        Raises:
            ElfError: It cannot be read, or is damaged.
        """
        with ElfFile(path) as elf:
            found = elf.dynamic
            levels = origin_levels(elf, file)
            search_path = (*found.rpath, *found.runpath)
            linked = tuple(one.name for one in found.linked)
            return cls(found.soname, found.needed, linked, search_path, levels)

    def must_differ(self, replaced_sonames: frozenset[str]) -> bool:
        """Return whether names have to be changed in a copy (`private_copy`)."""
        return not replaced_sonames.isdisjoint(self.needed) or any(
            map(is_relative, self.search_path)
        )


class Target(NamedTuple):
    """A library to map.

    Attributes:
        file: Its file.
        mapped_as: By which path it, or a copy of it, is mapped.
        is_copy: Whether it is a copy that is mapped.
        names: What it tells the dynamic linker.
    """

    file: OpenedFile
    mapped_as: str
    is_copy: bool
    names: LinkNames
