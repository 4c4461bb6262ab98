"""A check whether a library could be linked into this process: libraries, versions, symbols."""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from contextlib import closing
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

    from modular_tf.discovery.elf import ElfFile, VersionNeed
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


class LinkCheck(NamedTuple):
    """The result of a link check."""

    # What will be loaded with the library, as far as it is not loaded already; then what its code
    # may open by name and needs TensorFlow.
    libraries: tuple[ResolvedLibrary, ...] = ()
    missing_libraries: tuple[MissingLibrary, ...] = ()
    missing_symbols: tuple[MissingSymbol, ...] = ()
    problems: tuple[Violation, ...] = ()
    # paths at which other libraries would have been found instead
    passed_over: tuple[str, ...] = ()
    # files, of the library and of those loaded with it, that ask for an executable stack
    executable_stacks: tuple[str, ...] = ()


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
        symbols = tuple(_missing_symbols(own, scope, host))
        found = LinkCheck(
            libraries=tuple(
                ResolvedLibrary(library.name, library.elf.path, _is_companion(library, host))
                for library in scope.others
            ),
            missing_libraries=tuple(scope.missing),
            missing_symbols=symbols,
            problems=(
                *_library_problems(scope.missing),
                *size_problems(library.elf for library in scope.others),
                *_version_problems(own, scope, host),
                *_symbol_problems(
                    symbols, _KERNEL_API if takes_stand_ins else frozenset(), required_tensorflow
                ),
            ),
            passed_over=scope.passed_over,
            executable_stacks=_executable_stacks(scope),
        )
        if not _can_define_stand_ins():
            return found
        return _with_opened_by_name(found, own, scope, process, host, required_tensorflow)


def _with_opened_by_name(
    found: LinkCheck,
    own: Sequence[LinkedLibrary],
    scope: LinkScope,
    process: ProcessScope,
    host: HostExports,
    required_tensorflow: Callable[[], str | None],
) -> LinkCheck:
    """Add the libraries that code may open by name; those that cannot be linked are left out."""
    symbols: dict[MissingSymbol, None] = {}
    for opened in libraries_opened_by_name(own, scope, process, host):
        found = found._replace(passed_over=(*found.passed_over, *opened.passed_over))
        ours = [library for library in opened.libraries if library.is_companion]
        missing = _missing_of_opened(ours, opened, host)
        if missing is None:
            continue
        symbols.update(dict.fromkeys(missing))
        known = {library.path for library in found.libraries if library.is_opened}
        led = [
            ResolvedLibrary(library.name, library.elf.path, is_companion=True, is_opened=True)
            for library in ours
            if not host.sonames.isdisjoint(library.elf.dynamic.needed)
            and library.elf.path not in known
        ]
        found = found._replace(
            libraries=(*found.libraries, *led),
            executable_stacks=(*found.executable_stacks, *_executable_stacks(opened)),
        )
    return found._replace(
        missing_symbols=(*found.missing_symbols, *symbols),
        problems=(*found.problems, *_symbol_problems([*symbols], _C_API, required_tensorflow)),
        executable_stacks=tuple(dict.fromkeys(found.executable_stacks)),
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


def _executable_stacks(scope: LinkScope) -> tuple[str, ...]:
    found = (it.elf for it in scope.libraries if it.elf.image.wants_executable_stack)
    return tuple(elf.path for elf in found)


def _is_companion(library: LinkedLibrary, host: HostExports) -> bool:
    return library.is_companion or not host.sonames.isdisjoint(library.elf.dynamic.needed)


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
            continue
        groups[library.needed_by].append(library.name)
    for needed_by, names in groups.items():
        message = f"{needed_by} needs {_missing_libraries_in_words(names)}"
        yield Violation(rules.LIBRARIES_FOUND, message)


def _missing_libraries_in_words(names: Sequence[str]) -> str:
    """Return how many are missing, of which products, and the first names."""
    counts = Counter(_product_of(name) for name in names)
    known = [(product, count) for product, count in counts.most_common() if product is not None]
    if len(names) == 1:
        return f"{names[0]}{f' of {known[0][0]}' if known else ''}, which is not found"
    if len(known) == 1 and known[0][1] == len(names):
        of = f" of {known[0][0]}, which are not found"
    else:
        shares = ", ".join(f"{count} of {product}" for product, count in known)
        of = f" that are not found{f' ({shares})' if shares else ''}"
    return f"{len(names)} libraries{of}: {_listed(names)}"


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
    for library in own:
        needs = [need for need in library.elf.version_needs() if not need.weak]
        too_new = [need for need in needs if _is_newer(need, running)]
        if too_new:
            worst = max(too_new, key=lambda need: parse_glibc(need.version) or ())
            message = f"{library.name} needs {worst.version}, this process runs glibc {running}"
            yield Violation(rules.GLIBC_NEW_ENOUGH, message)
        for need in needs:
            if parse_glibc(need.version) is None and not _is_version_offered(need, scope, host):
                message = f"{library.name} needs version {need.version} of {need.library}"
                yield Violation(
                    rules.SYMBOL_VERSIONS_OFFERED, f"{message}, which does not define it"
                )


def _is_newer(need: VersionNeed, running: str | None) -> bool:
    numbers = parse_glibc(need.version)
    here = parse_glibc(f"GLIBC_{running}")
    return numbers is not None and here is not None and numbers > here


def _is_version_offered(need: VersionNeed, scope: LinkScope, host: HostExports) -> bool:
    """Return whether the named library defines the version; an unversioned one defines all."""
    if need.library in host.sonames:
        return True  # its replacement needs no version
    provider = scope.library(need.library)
    if provider is None:
        return True  # the missing library is reported already
    defined = provider.elf.version_definitions()
    return not defined or need.version in defined


def _missing_symbols(
    own: Iterable[LinkedLibrary], scope: LinkScope, host: HostExports
) -> Iterator[MissingSymbol]:
    for library in own:
        for symbol in library.elf.undefined():
            if symbol.weak or symbol.name in host.symbols or scope.offers(symbol.name):
                continue
            family = family_of(symbol)
            if not _is_excused(family, scope):
                readable = readable_name(symbol.name)
                yield MissingSymbol(symbol.name, readable, symbol.version, family, library.name)


def _is_excused(family: SymbolFamily, scope: LinkScope) -> bool:
    """Return whether a symbol may be defined though no library that was read defines it."""
    if family is SymbolFamily.PYTHON:
        return True  # Python may be embedded, its library opened later than the program
    # With a library missing, symbols of unknown origin are most likely its own.
    return family is SymbolFamily.OTHER and bool(scope.missing)


def _symbol_problems(
    missing: Sequence[MissingSymbol],
    replaced: frozenset[SymbolFamily],
    required_tensorflow: Callable[[], str | None],
) -> Iterator[Violation]:
    """Yield one problem for each library and family, which have remedies of their own.

    `replaced` are the families whose missing functions are replaced.
    """
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
