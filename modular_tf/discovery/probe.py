"""The probe: reads a candidate's file and decides whether it will load here.

No code of the candidate runs, and nothing is opened with dlopen.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import SERVED_KINDS, Kind, Source
from modular_tf.discovery.elf import ElfFile, UndefinedSymbol, VersionNeed, glibc_floor
from modular_tf.discovery.elf.image import machine_name
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.link_check import (
    LinkCheck,
    check_link,
    size_problems,
)
from modular_tf.discovery.linking.link_scope import ProcessScope
from modular_tf.discovery.privileges import is_privileged, linker_variable
from modular_tf.discovery.sources.installed import required_tensorflow
from modular_tf.discovery.sources.search_paths import python_path
from modular_tf.errors import ElfError
from modular_tf.rules import Violation
from modular_tf.rules import loading as rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from typing_extensions import Self

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.elf import Symbol
    from modular_tf.discovery.linking.host_exports import HostExports


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """The facts of one library."""

    machine: str  # that it is built for, such as "x86-64"
    size: int  # of the file, in bytes
    soname: str | None  # the name by which others need it
    needed: tuple[str, ...]  # names of the libraries that it needs
    rpath: tuple[str, ...]  # directories of DT_RPATH, unexpanded
    runpath: tuple[str, ...]  # directories of DT_RUNPATH, unexpanded
    init_symbols: tuple[str, ...]  # that it exports
    undefined: tuple[UndefinedSymbol, ...]  # symbols that others have to define
    version_needs: tuple[VersionNeed, ...]
    glibc_floor: str | None  # the oldest glibc that it runs with, such as "GLIBC_2.34"
    binds_now: bool  # it asks for all symbols on loading
    runs_code_on_load: bool  # dlopen already runs code of it
    bits: int = 64  # only libraries of this word size are read
    byte_order: str = "little"  # nor others than these

    @classmethod
    def of(cls, elf: ElfFile, init_symbols: Iterable[str]) -> ElfFacts:
        """Return the facts about an open library; raises `ElfError` for damaged tables."""
        dynamic, needs = elf.dynamic, elf.version_needs()
        return cls(
            machine=elf.image.machine,
            size=elf.size,
            soname=dynamic.soname,
            needed=dynamic.needed,
            rpath=dynamic.rpath,
            runpath=dynamic.runpath,
            init_symbols=tuple(init_symbols),
            undefined=elf.undefined(),
            version_needs=needs,
            glibc_floor=glibc_floor(needs),
            binds_now=dynamic.binds_now,
            runs_code_on_load=dynamic.runs_code_on_load,
        )


_INIT_SYMBOLS = {
    "TF_InitPlugin": Kind.FILESYSTEM,
    "SE_InitPlugin": Kind.DEVICE,
    "TF_InitKernel": Kind.KERNEL,
    "TF_InitGraph": Kind.GRAPH,
    "TF_InitProfiler": Kind.PROFILER,
    "TFNPD_InitPlugin": Kind.NEXT_DEVICE,
    "GetPjrtApi": Kind.NEXT_DEVICE,
}
# That of the first draft of kernels. Any library may use that name, so it must register some.
_EARLY_KERNEL_INIT, _REGISTERS_KERNELS = "InitPlugin", "TF_RegisterKernelBuilder"


def init_symbols_of(elf: ElfFile) -> dict[str, tuple[Kind, Symbol]]:
    """Return the exported init symbols with their kinds; raises `ElfError` for damaged tables."""
    names = ((name, kind, elf.find(name)) for name, kind in _INIT_SYMBOLS.items())
    found = {name: (kind, symbol) for name, kind, symbol in names if symbol is not None}
    if not any(kind is Kind.KERNEL for kind, _ in found.values()):
        early = elf.find(_EARLY_KERNEL_INIT)
        if early is not None and any(it.name == _REGISTERS_KERNELS for it in elf.undefined()):
            found[_EARLY_KERNEL_INIT] = Kind.KERNEL, early
    return found


@dataclass(frozen=True, kw_only=True)
class Probe(LinkCheck):
    """The result of probing one candidate: what linking it would do, and what it is."""

    candidate: Candidate
    kinds: frozenset[Kind]  # of plugin that it is; empty if it is none or unreadable
    elf: ElfFacts | None  # facts of the library; None if it could not be read


class Prober:
    """Probes candidates; keeps what it read of this process for the next one.

    A context manager that owns some open files. [any thread, one at a time].
    """

    def __init__(self, host: HostExports, *, environment: Mapping[str, str] | None = None) -> None:
        """Create a prober; the linker's variables are those of `environment`, or `os.environ`."""
        variables = os.environ if environment is None else environment
        self._library_path = linker_variable("LD_LIBRARY_PATH", variables)
        self._preload = linker_variable("LD_PRELOAD", variables)
        self._host = host
        self._process: ProcessScope | None = None

    def probe(self, candidate: Candidate, *, link: bool = True) -> Probe:
        """Return the probe of a candidate; what is wrong with it becomes a problem of the result.

        Where `link` is false, what it needs is not searched for: that can take long for a file
        that was made to be slow.
        """
        # The linker that would be asked lacks the capabilities of this program's file: it may read
        # less. No variable or path of a user changes what bundled plugins are linked with then.
        link = link and not (candidate.source is Source.BUNDLED and is_privileged())
        problems: list[Violation] = []
        kinds: frozenset[Kind] = frozenset()
        facts, linked = None, LinkCheck()
        try:
            with ElfFile(candidate.path) as elf:
                name, machine = os.path.basename(elf.path), running_program().machine
                problems += size_problems([elf])
                if elf.image.machine_number != machine:
                    own = machine_name(machine, 64, "<")
                    built = f"{name} is built for {elf.image.machine}"
                    message = f"{built}, this process runs on {own}"
                    problems.append(Violation(rules.MACHINE, message))
                init_symbols = init_symbols_of(elf)
                kinds = frozenset(kind for kind, _ in init_symbols.values())
                facts = ElfFacts.of(elf, init_symbols)
                elf.require_shared_object()
                problems += _init_symbol_problems(name, init_symbols)
                if link and not problems:
                    release = partial(required_tensorflow, candidate.distribution, python_path())
                    linked = check_link(
                        elf,
                        self._host,
                        self._scope(),
                        takes_stand_ins=not kinds.isdisjoint((Kind.DEVICE, Kind.KERNEL)),
                        required_tensorflow=release,
                    )
                    problems += linked.problems
        except ElfError as error:
            problems.append(Violation.of_error(error))
        found = {**vars(linked), "problems": tuple(problems)}
        return Probe(candidate=candidate, kinds=kinds, elf=facts, **found)

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _scope(self) -> ProcessScope:
        if self._process is None:
            self._process = ProcessScope(library_path=self._library_path, preload=self._preload)
        return self._process


def probe(
    candidate: Candidate, host: HostExports, *, environment: Mapping[str, str] | None = None
) -> Probe:
    """Return the probe of one candidate; for several a `Prober` is faster. [any thread]"""
    with Prober(host, environment=environment) as prober:
        return prober.probe(candidate)


def _init_symbol_problems(
    name: str, init_symbols: Mapping[str, tuple[Kind, Symbol]]
) -> list[Violation]:
    if not init_symbols:
        message = f"{name} exports neither TF_InitPlugin nor SE_InitPlugin nor another init symbol"
        return [Violation(rules.INIT_SYMBOL, message)]
    if not any(kind in SERVED_KINDS for kind, _ in init_symbols.values()):
        message = f"{name} exports only {', '.join(init_symbols)}"
        return [Violation(rules.KIND_SERVED, message)]
    return [
        Violation(rules.INIT_SYMBOL_IS_FUNCTION, f"{symbol} of {name} is data or thread-local")
        for symbol, (_, found) in init_symbols.items()
        if not found.is_callable
    ]
