"""The probe: reads a candidate's file and decides whether it will load here.

No code of the candidate runs, and nothing is opened with dlopen.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.elf.machine import machine_name
from modular_tf.discovery.elf_facts import ElfFacts, read_facts
from modular_tf.discovery.init_symbols import init_symbols_of
from modular_tf.discovery.kinds import SERVED_KINDS, Kind
from modular_tf.discovery.linking.dynamic_linker import running_program
from modular_tf.discovery.linking.link_check import (
    LinkCheck,
    MissingSymbol,
    ResolvedLibrary,
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
    from collections.abc import Mapping
    from types import TracebackType

    from typing_extensions import Self

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.elf import Symbol
    from modular_tf.discovery.linking.host_exports import HostExports

__all__ = ["Probe", "Prober", "probe"]


@dataclass(frozen=True, slots=True)
class Probe:
    """The result of probing one candidate.

    Attributes:
        candidate: The candidate.
        kinds: The kinds of plugin that it is; empty if it is none or unreadable.
        elf: Facts of the library; None if it could not be read.
        problems: The rules that it breaks, the most significant first.
        libraries: The libraries that will be loaded with it, and those that its code may open by
            name and that need TensorFlow.
        missing_symbols: The symbols that it needs and that are not defined anywhere.
        passed_over: Paths at which other libraries would have been found instead.
        executable_stacks: Files, of the candidate and of those loaded with it, that ask for an
            executable stack.
    """

    candidate: Candidate
    kinds: frozenset[Kind]
    elf: ElfFacts | None
    problems: tuple[Violation, ...]
    libraries: tuple[ResolvedLibrary, ...] = ()
    missing_symbols: tuple[MissingSymbol, ...] = ()
    passed_over: tuple[str, ...] = ()
    executable_stacks: tuple[str, ...] = ()

    @property
    def loadable(self) -> bool:
        """Whether it can be loaded here."""
        return not any(problem.is_error for problem in self.problems)


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
                problems += (*size_problems([elf]), *_machine_problems(elf))
                init_symbols = init_symbols_of(elf)
                kinds = frozenset(kind for kind, _ in init_symbols.values())
                facts = read_facts(elf, init_symbols)
                elf.require_shared_object()
                problems += _init_symbol_problems(elf, init_symbols)
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
        return Probe(
            candidate=candidate,
            kinds=kinds,
            elf=facts,
            problems=tuple(problems),
            libraries=linked.libraries,
            missing_symbols=linked.missing_symbols,
            passed_over=linked.passed_over,
            executable_stacks=linked.executable_stacks,
        )

    def close(self) -> None:
        """Close all files; a second call does nothing."""
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
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


def _machine_problems(elf: ElfFile) -> list[Violation]:
    own = running_program().machine
    if elf.image.machine_number == own:
        return []
    built = f"{os.path.basename(elf.path)} is built for {elf.image.machine}"
    message = f"{built}, this process runs on {machine_name(own, 64, '<')}"
    return [Violation(rules.MACHINE, message)]


def _init_symbol_problems(
    elf: ElfFile, init_symbols: Mapping[str, tuple[Kind, Symbol]]
) -> list[Violation]:
    name = os.path.basename(elf.path)
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
