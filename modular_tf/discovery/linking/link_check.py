"""A check whether a library could be linked into this process: libraries, versions, symbols."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.elf import parse_glibc
from modular_tf.discovery.file_identity import MOST_BYTES
from modular_tf.discovery.linking.link_scope import (
    LinkedLibrary,
    LinkScope,
    MissingLibrary,
    ProcessScope,
    libraries_opened_by_name,
)
from modular_tf.discovery.linking.symbol_families import (
    SymbolFamily,
    family_of,
    origin_of,
    readable_name,
)
from modular_tf.errors import ElfError
from modular_tf.rules import Violation
from modular_tf.rules import loading as rules
from modular_tf.tables import read_table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from modular_tf.discovery.elf import ElfFile
    from modular_tf.discovery.linking.host_exports import HostExports

_ABSOLUTE_SYMBOLS_SINCE = (2, 28)
_MAX_LOOK_UPS = 2_000_000  # 20 000 symbols in each of a hundred libraries
_KERNEL_API = frozenset((SymbolFamily.KERNEL_API,))
_C_API = _KERNEL_API | {SymbolFamily.PLUGIN_API}
_SHOWN = 5  # symbols or libraries named in a message; the probe keeps them all


class MissingSymbol(NamedTuple):
    """A strong undefined symbol that no library defines."""

    name: str  # mangled if it is C++
    readable: str  # the plain part of a mangled name
    version: str | None  # the symbol version that is asked for
    family: SymbolFamily  # the kind of library that could define it
    needed_by: str  # name of the library that needs it: the plugin or a companion


class ResolvedLibrary(NamedTuple):
    """A library that will be loaded with a plugin."""

    name: str  # by which it is needed
    path: str
    # It was found where a library pointed to, not in the system; or it needs what the host stands
    # in for, to which only a copy of it can be led.
    is_companion: bool
    is_opened: bool = False  # it is not needed: code may open it by its name


@dataclass(frozen=True, kw_only=True)
class LinkCheck:
    """The result of a link check."""

    problems: tuple[Violation, ...] = ()  # the rules that it breaks, the most significant first
    # What will be loaded with the library, as far as it is not loaded already; then what its code
    # may open by name and needs TensorFlow.
    libraries: tuple[ResolvedLibrary, ...] = ()
    missing_symbols: tuple[MissingSymbol, ...] = ()  # that are not defined anywhere
    # paths at which other libraries would have been found instead
    passed_over: tuple[str, ...] = ()
    # files, of the library and of those loaded with it, that ask for an executable stack
    executable_stacks: tuple[str, ...] = ()

    @property
    def loadable(self) -> bool:
        """Whether it can be loaded here."""
        return not any(problem.is_error for problem in self.problems)


def check_link(
    elf: ElfFile,
    host: HostExports,
    process: ProcessScope,
    *,
    takes_stand_ins: bool = False,
    required_tensorflow: Callable[[], str | None] = lambda: None,
) -> LinkCheck:
    """Return whether a library can be linked with this process, this system and the host.

    Companions are checked with it: they were made for it, not for this system. Libraries of the
    system are taken to be whole.

    `takes_stand_ins` is true for a library that brings devices or kernels: these are served even if
    it asks for functions for kernels, operations and graphs that are not defined anywhere.
    `required_tensorflow` is called where functions of TensorFlow itself are missing; it returns the
    TensorFlow that the library's package requires, as the package writes it.

    Raises `ElfError` if the tables of the library or of one that it needs are damaged.
    """
    name = os.path.basename(elf.path)
    try:
        root = LinkedLibrary(name, elf, is_companion=True)
        scope = LinkScope(root, process, offered=host.sonames)
    except ElfError as error:
        return LinkCheck(problems=(Violation.of_error(error),))
    with closing(scope):
        own = [library for library in scope.libraries if library.is_companion]
        # Counted by the libraries in which each symbol is looked up.
        left = _MAX_LOOK_UPS // (len(scope.libraries) + len(process.libraries))
        for library in own:
            left -= len(library.elf.undefined())
            if left < 0:
                message = f"linking {name} takes more than {_MAX_LOOK_UPS} look-ups of symbols"
                return LinkCheck(problems=(Violation(rules.LINKING_BOUNDED, message),))
        symbols = [*_missing_symbols(own, scope, host)]
        libraries = [
            ResolvedLibrary(it.name, it.elf.path, it.is_companion or _needs_host(it, host))
            for it in scope.others
        ]
        replaced = _KERNEL_API if takes_stand_ins else frozenset()
        problems = [
            *_library_problems(scope.missing),
            *size_problems(library.elf for library in scope.others),
            *_version_problems(own, scope, host),
            *_symbol_problems(symbols, replaced, required_tensorflow),
        ]
        passed_over = [*scope.passed_over]
        stacks = _executable_stacks(scope)
        of_opened: dict[MissingSymbol, None] = {}
        for opened in (
            libraries_opened_by_name(own, scope, process, host) if _can_define_stand_ins() else ()
        ):
            passed_over += opened.passed_over
            ours = [library for library in opened.libraries if library.is_companion]
            if (missing := _missing_of_opened(ours, opened, host)) is not None:
                of_opened.update(dict.fromkeys(missing))
                stacks += _executable_stacks(opened)
                known = {library.path for library in libraries if library.is_opened}
                libraries += [
                    ResolvedLibrary(it.name, it.elf.path, is_companion=True, is_opened=True)
                    for it in ours
                    if _needs_host(it, host) and it.elf.path not in known
                ]
        problems += _symbol_problems([*of_opened], _C_API, required_tensorflow)
        return LinkCheck(
            problems=tuple(problems),
            libraries=tuple(libraries),
            missing_symbols=(*symbols, *of_opened),
            passed_over=tuple(passed_over),
            executable_stacks=tuple(dict.fromkeys(stacks)),
        )


def _missing_of_opened(
    ours: Sequence[LinkedLibrary], opened: LinkScope, host: HostExports
) -> tuple[MissingSymbol, ...] | None:
    """Return the missing functions of the C API; None if it cannot be linked, or is damaged.

    A function that another library defines may be there by then, if the code opens that one first.
    """
    if opened.missing or any(library.elf.size > MOST_BYTES for library in ours):
        return None
    try:
        missing = tuple(_missing_symbols(ours, opened, host))
    except ElfError:
        return None
    if any(lost.family not in _C_API | {SymbolFamily.OTHER} for lost in missing):
        return None
    return tuple(lost for lost in missing if lost.family in _C_API)


def _executable_stacks(scope: LinkScope) -> list[str]:
    return [it.elf.path for it in scope.libraries if it.elf.image.wants_executable_stack]


def _needs_host(library: LinkedLibrary, host: HostExports) -> bool:
    return not host.sonames.isdisjoint(library.elf.dynamic.needed)


def running_glibc() -> str | None:
    """Return the version of this process's glibc, such as "2.36"; None if it has another libc."""
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (ValueError, OSError):
        return None
    return version if name == "glibc" else None


def _library_problems(missing: Iterable[MissingLibrary]) -> Iterator[Violation]:
    groups: defaultdict[str, list[str]] = defaultdict(list)
    for library in missing:
        if library.error is not None:
            yield Violation.of_error(library.error)
        else:
            groups[library.needed_by].append(library.name)
    for needed_by, names in groups.items():
        if len(names) == 1:
            product = _product_of(names[0])
            what = f"{names[0]}{f' of {product}' if product else ''}, which is not found"
        else:
            counts = Counter(map(_product_of, names))
            shares = [
                f"{n if n < len(names) else 'all'} of {product}"
                for product, n in counts.most_common()
                if product is not None
            ]
            of = f" ({', '.join(shares)})" if shares else ""
            what = f"{len(names)} libraries that are not found{of}: {_listed(names)}"
        yield Violation(rules.LIBRARIES_FOUND, f"{needed_by} needs {what}")


@cache
def _products() -> dict[str, str]:
    """Return the product of each pattern."""
    families = read_table("discovery/linking/library_families.toml")["family"]
    return {pattern: family["words"] for family in families for pattern in family["names"]}


def _product_of(soname: str) -> str | None:
    """Return the product that brings a library, such as "AMD's ROCm"; None if it is unknown."""
    stem = soname.partition(".so")[0]
    for pattern, product in _products().items():
        if fnmatchcase(stem, pattern):
            return product
    return None


def size_problems(libraries: Iterable[ElfFile]) -> Iterator[Violation]:
    """Yield a problem for each library that is too long to be read."""
    for elf in libraries:
        if elf.size > MOST_BYTES:
            message = f"{elf.path} has {elf.size} bytes, a library at most {MOST_BYTES}"
            yield Violation(rules.SIZE_BOUNDED, message, path=elf.path)


def _version_problems(
    own: Iterable[LinkedLibrary], scope: LinkScope, host: HostExports
) -> Iterator[Violation]:
    running = running_glibc()
    here = parse_glibc(f"GLIBC_{running}")
    for library in own:
        needs = [need for need in library.elf.version_needs() if not need.weak]
        numbers = {need.version: parse_glibc(need.version) or () for need in needs}
        newest = max(numbers, key=lambda version: numbers[version], default="")
        if here is not None and newest and numbers[newest] > here:
            message = f"{library.name} needs {newest}, this process runs glibc {running}"
            yield Violation(rules.GLIBC_NEW_ENOUGH, message)
        for need in needs:
            provider = scope.library(need.library)
            # The replacement of a library needs no version; a missing one is reported already.
            if numbers[need.version] or need.library in host.sonames or provider is None:
                continue
            defined = provider.elf.version_definitions()
            if defined and need.version not in defined:  # an unversioned library defines all
                message = f"{library.name} needs version {need.version} of {need.library}"
                message = f"{message}, which does not define it"
                yield Violation(rules.SYMBOL_VERSIONS_OFFERED, message)


def _missing_symbols(
    own: Iterable[LinkedLibrary], scope: LinkScope, host: HostExports
) -> Iterator[MissingSymbol]:
    # Python may be embedded, its library opened later than the program. With a library missing,
    # symbols of unknown origin are most likely its own.
    excused = {SymbolFamily.PYTHON, *([SymbolFamily.OTHER] if scope.missing else [])}
    for library in own:
        for symbol in library.elf.undefined():
            if symbol.weak or symbol.name in host.symbols or scope.offers(symbol.name):
                continue
            if (family := family_of(symbol)) not in excused:
                readable = readable_name(symbol.name)
                yield MissingSymbol(symbol.name, readable, symbol.version, family, library.name)


def _symbol_problems(
    missing: Sequence[MissingSymbol],
    replaced: frozenset[SymbolFamily],
    required_tensorflow: Callable[[], str | None],
) -> Iterator[Violation]:
    """Yield one problem for each library and family, which have remedies of their own."""
    groups: defaultdict[tuple[str, SymbolFamily], list[MissingSymbol]] = defaultdict(list)
    for symbol in missing:
        groups[symbol.needed_by, symbol.family].append(symbol)
    for (needed_by, family), group in groups.items():
        plural = "s" if len(group) > 1 else ""
        if family is SymbolFamily.TENSORFLOW_CXX:
            counts = Counter(origin_of(symbol.name) for symbol in group)
            by_count = sorted(counts.items(), key=lambda share: (-share[1], share[0]))
            shares = ", ".join(f"{origin} {count}" for origin, count in by_count)
            required = required_tensorflow()
            release = f" (its package requires {required})" if required else ""
            what = f"{len(group)} C++ function{plural} of TensorFlow itself{release}: {shares}"
        else:
            names = _listed([symbol.readable for symbol in group])
            what = f"{len(group)} symbol{plural} {family.words} that no library defines: {names}"
        message = f"{needed_by} needs {what}"
        if family in replaced and _can_define_stand_ins():
            yield Violation(rules.KERNEL_FUNCTIONS_OFFERED, message)
        else:
            yield Violation(rules.SYMBOLS_OFFERED, message, remedy=family.remedy)


def _can_define_stand_ins() -> bool:
    """Return whether a stub library can define functions here (`discovery.elf.stub_library`)."""
    return (parse_glibc(f"GLIBC_{running_glibc()}") or ()) >= _ABSOLUTE_SYMBOLS_SINCE


def _listed(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are; `why` lists all."""
    different = list(dict.fromkeys(names))
    more = f" and {len(different) - _SHOWN} more" if len(different) > _SHOWN else ""
    return ", ".join(different[:_SHOWN]) + more
