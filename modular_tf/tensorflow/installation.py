"""TensorFlow as it lies on the disk; nothing of it is imported."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from functools import cache
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.concurrency.computed_once import computed_once
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.symbols import SymbolName
from modular_tf.errors import ElfError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Sequence

_PACKAGE = "tensorflow"
# What TensorFlow 2.12 says of a device plugin without timers; later ones do not demand them.
_DEMAND_OF_TIMERS = b"'create_timer' field in SP_StreamExecutor must be set"
_BLOCK = 1 << 22


class Releases(NamedTuple):
    """What is known of TensorFlow's releases; `releases.toml` says what the fields mean."""

    distributions: tuple[str, ...]
    libraries: tuple[str, ...]
    schemes: tuple[str, ...]
    init_functions: tuple[str, ...]
    calls_while_loading: tuple[str, ...]
    platforms: tuple[str, ...]
    device_layouts: tuple[str, ...]
    aborting_rules: tuple[str, ...]
    refusing_rules: tuple[str, ...]
    undecided_rules: tuple[str, ...]


@cache
def releases() -> Releases:
    """Return what is known. [any thread]"""
    known = tomllib.loads(Path(__file__).with_name("releases.toml").read_text("utf-8"))
    return Releases(**{name: tuple(values) for name, values in known.items()})


@dataclass(frozen=True)
class TensorFlowInstallation:
    """A TensorFlow that `import tensorflow` would import.

    Attributes:
        folder: The package's folder.
        version: Its version; "" where no metadata says it.
        libraries: Its libraries with which plugins are linked.
    """

    folder: str
    version: str
    libraries: tuple[str, ...]

    @computed_once
    def opened(self) -> tuple[ElfFile, ...]:
        """Its libraries, read; what is damaged is left out."""
        return tuple(_opened(self.libraries))

    @computed_once
    def is_global(self) -> bool:
        """Whether all that is loaded later sees the symbols of its libraries.

        If not, a library has to name as needed what it takes symbols from.
        """
        return os.path.isfile(os.path.join(self.folder, "python", "pywrap_dlopen_global_flags.py"))

    def exports_to(self, needed: Iterable[str]) -> TensorFlowExports:
        """Return what it offers to a library that it loads.

        Args:
            needed: The names of the libraries that this one needs, and its companions need.
        """
        by_name = {elf.dynamic.soname: elf for elf in self.opened if elf.dynamic.soname}
        waiting = list(by_name if self.is_global else needed)
        reached: dict[str, ElfFile] = {}
        while waiting:
            name = waiting.pop()
            if name in by_name and name not in reached:
                reached[name] = by_name[name]
                waiting += by_name[name].dynamic.needed
        return TensorFlowExports(_Symbols(tuple(reached.values())), frozenset(by_name))

    @computed_once
    def demands_timers(self) -> bool:
        """Whether it ends the process for a device plugin without timers."""
        before = b""
        try:
            with open(self.libraries[0], "rb") as file:
                while block := file.read(_BLOCK):
                    if _DEMAND_OF_TIMERS in before + block:
                        return True
                    before = block[-len(_DEMAND_OF_TIMERS) :]
        except OSError:
            pass
        return False

    @computed_once
    def scans_every_scheme(self) -> bool:
        """Whether it opens plugins in the directories of all installation schemes of Python.

        In older ones it is those of the scheme that is in use.
        """
        try:
            text = Path(self.folder, "__init__.py").read_text("utf-8", "replace")
        except OSError:
            return False
        return "get_scheme_names" in text


class TensorFlowExports(NamedTuple):
    """What TensorFlow exports to plugins; `Exports` says what the fields mean."""

    symbols: Container[str]
    sonames: frozenset[str]


class _Symbols:
    """The symbols of libraries, each looked up when it is asked for: there are 530 000."""

    def __init__(self, libraries: Sequence[ElfFile]) -> None:
        self._libraries = libraries

    def __contains__(self, name: object) -> bool:
        wanted = SymbolName(str(name))
        return any(elf.find(wanted) is not None for elf in self._libraries)


def _opened(libraries: Iterable[str]) -> Iterator[ElfFile]:
    for path in libraries:
        try:
            yield ElfFile(path)
        except ElfError:
            continue


def find_tensorflow(python_path: Sequence[str] | None = None) -> TensorFlowInstallation | None:
    """Return the TensorFlow on the path of Python, without importing it; None for none.

    Args:
        python_path: Where to look; by default `sys.path`.
    """
    for location in sys.path if python_path is None else python_path:
        folder = os.path.join(location or os.getcwd(), _PACKAGE)
        paths = [os.path.join(folder, name) for name in releases().libraries]
        if os.path.isfile(paths[0]):
            present = tuple(path for path in paths if os.path.isfile(path))
            return TensorFlowInstallation(folder, _version_in(location), present)
    return None


def _version_in(location: str) -> str:
    known = releases().distributions
    for name in sorted(glob("tensorflow*.dist-info", root_dir=location or None)):
        distribution, _, version = name.removesuffix(".dist-info").partition("-")
        if distribution in known:
            return version
    return ""
