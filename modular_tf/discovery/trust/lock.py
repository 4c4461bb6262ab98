"""The lock file, and a check whether plugins and the code of hooks are in it where they are frozen.

It has the hashes of plugins that were looked at and accepted, as JSON, sorted, one fact a line, so
that a change of it can be read and reviewed. It names no directories: a plugin is known by its
bytes, wherever it lies.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

from modular_tf.codec import decode, digest, encode
from modular_tf.discovery.file_identity import sha256_of
from modular_tf.discovery.trust.policy import TrustVerdict
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.discovery.trust.judge import JudgedFile
    from modular_tf.discovery.trust.paths import PathJudge

_FORMAT = "modular_tf_lock"
_VERSION = 1
_COMPILED = "__pycache__"  # which Python writes anew
_Locked = TypeVar("_Locked")


@dataclass(frozen=True, slots=True, order=True)
class LockedFile:
    """One file by its bytes."""

    file: str  # its name without directories, for people
    sha256: Annotated[str, digest]  # in hexadecimal digits
    size: int  # in bytes


@dataclass(frozen=True, slots=True, order=True)
class LockedPlugin:
    """One plugin that the lock file accepts."""

    name: str  # what the service called it, for people
    library: LockedFile
    distribution: str | None = None  # name and version of the distribution that brought it
    schemes: tuple[str, ...] = ()  # that it served, if that was known; for people
    device_types: tuple[str, ...] = ()  # as schemes
    companions: tuple[LockedFile, ...] = ()  # the libraries that it brings along


@dataclass(frozen=True, slots=True, order=True)
class LockedHook:
    """One hook of an installed package that the lock file accepts."""

    name: str  # its distribution and its name, for people
    value: str  # what its entry point names: `package.module:object`
    code: LockedFile  # of the whole package (`modular_tf.discovery.trust.lock.code_of_hook`)


@dataclass(frozen=True, slots=True)
class LockFile:
    """The content of a lock file: all accepted plugins, and hooks of installed packages."""

    plugins: Mapping[str, LockedPlugin]  # by the hash of their library
    hooks: tuple[LockedHook, ...] = ()

    @classmethod
    def of(cls, plugins: Iterable[LockedPlugin], hooks: Iterable[LockedHook] = ()) -> LockFile:
        """Return the lock file of plugins and hooks in any order.

        Two with the same bytes are one, with the companions of both.
        """
        table: dict[str, LockedPlugin] = {}
        for plugin in sorted(plugins, key=lambda plugin: (plugin.name, plugin.library.sha256)):
            first = table.setdefault(plugin.library.sha256, plugin)
            companions = tuple(sorted({*first.companions, *plugin.companions}))
            table[plugin.library.sha256] = replace(first, companions=companions)
        return cls(table, tuple(sorted(hooks)))

    @classmethod
    def parse(cls, text: str | bytes) -> LockFile:
        """Return the lock file with a text."""
        try:
            values = json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        if not isinstance(values, dict) or values.get(_FORMAT) != _VERSION:
            raise ValueError(f"expected a JSON object with {_FORMAT!r}: {_VERSION}")
        hooks = values.get("hooks", [])  # older files have none
        found = decode(_Content, {"plugins": values.get("plugins"), "hooks": hooks})
        return cls.of(
            [_known(LockedPlugin, entry) for entry in found.plugins],
            [_known(LockedHook, entry) for entry in found.hooks],
        )

    def as_dict(self) -> dict[str, Any]:
        """Return plugins and hooks as values of JSON."""
        plugins = [
            {
                "name": plugin.name,
                **encode(plugin.library),
                "distribution": plugin.distribution,
                "schemes": sorted(plugin.schemes),
                "device_types": sorted(plugin.device_types),
                "companions": encode(sorted(plugin.companions)),
            }
            for plugin in self.plugins.values()
        ]
        hooks = [{"name": h.name, "value": h.value, **encode(h.code)} for h in self.hooks]
        return {"plugins": plugins, "hooks": hooks}

    def text(self) -> str:
        """Return the text of the file; the same plugins give the same text."""
        values = self.as_dict()
        if not self.hooks:
            del values["hooks"]
        return json.dumps({_FORMAT: _VERSION, **values}, indent=2) + "\n"


class _Content(NamedTuple):
    plugins: list[Any]
    hooks: list[Any]


def _known(kind: type[_Locked], entry: Any) -> _Locked:
    """Return what an entry has for a kind; later versions may add more."""
    given = decode(dict[str, Any], entry)
    record: Any = kind
    values = {field.name: given.get(field.name) for field in fields(record)}
    for name in ("library", "code"):  # whose fields stand among the others
        if name in values:
            values[name] = {field.name: given.get(field.name) for field in fields(LockedFile)}
    return decode(kind, values)


class Lock:
    """The lock file, read at its first use; a path of None accepts nothing.

    `paths` checks the lock file itself: one that untrusted users can change is not used.
    """

    def __init__(self, path: str | None, paths: PathJudge) -> None:
        self._path = path
        self._paths = paths
        self._read: LockFile | Violation | None = None

    def verdict(self, file: JudgedFile, of: str | None = None) -> TrustVerdict:
        """Return the verdict on a plugin's library, or on a companion of the one with hash `of`."""
        if self._read is None:
            self._read = self._load()
        if isinstance(self._read, Violation):
            return TrustVerdict.of_problem(self._read)
        plugin = self._read.plugins.get(of or file.sha256())
        if plugin is None:
            return self._refusal(file, "")
        if of is None:
            return self._accept(plugin.name)
        if any(companion.sha256 == file.sha256() for companion in plugin.companions):
            return self._accept(f"a companion of {plugin.name}")
        return self._refusal(file, f" as a companion of {plugin.name!r}")

    def refusal_of_hook(self, value: str) -> Violation | None:
        """Return why the hook with an entry point must not run; None if its code is locked."""
        if self._read is None:
            self._read = self._load()
        if isinstance(self._read, Violation):
            return self._read
        try:
            code = code_of_hook(value)
        except OSError as error:
            raise_shortage(error)
            return Violation(rules.LOCKED, f"the code of {value} cannot be compared: {error}")
        if any((value, code.sha256) == (it.value, it.code.sha256) for it in self._read.hooks):
            return None
        message = f"{self._path} does not have {value} with this code, whose sha256 is"
        return Violation(rules.LOCKED, f"{message} {code.sha256}")

    def _accept(self, name: str) -> TrustVerdict:
        return TrustVerdict(rules.LOCKED, f"{self._path} has its hash, as {name}")

    def _refusal(self, file: JudgedFile, role: str) -> TrustVerdict:
        message = f"{self._path} does not have {file.path}{role}, whose sha256 is {file.sha256()}"
        return TrustVerdict.of_problem(Violation(rules.LOCKED, message, path=file.path))

    def _load(self) -> LockFile | Violation:
        path = self._path
        if path is None:
            return Violation(rules.LOCK_USABLE, "plugins are frozen, and no lock file is named")
        try:
            offence = self._paths.judge(os.path.abspath(path)).offence
            if offence is not None:
                what = f"the lock file {path} is not used: {offence.message}"
                return Violation(rules.LOCK_USABLE, what, remedy=offence.remedy, path=path)
            with open(path, "rb") as stream:
                return LockFile.parse(stream.read())
        except OSError as error:
            raise_shortage(error)
            what = f"the lock file {path} cannot be read: {error.strerror}"
        except ValueError as error:
            what = f"{path} is no lock file: {error}"
        return Violation(rules.LOCK_USABLE, what, path=path)


def code_of_hook(value: str) -> LockedFile:
    """Return the code of the top-level package, or module, that an entry point names.

    That is the hash of a list of all its modules, with the hash of each. Raises `OSError` if there
    is no such package, or a file of it cannot be read.
    """
    top = value.partition(":")[0].partition(".")[0].strip()
    try:
        spec = find_spec(top)
    except Exception as error:  # finders of editable installs may raise anything
        raise_shortage(error)
        raise OSError(f"package {top!r} cannot be found: {error!r}") from error
    if spec is None:
        raise OSError(f"package {top!r} is not installed")
    if spec.submodule_search_locations is None:
        files = [(os.path.basename(spec.origin or ""), spec.origin or "")]
    else:
        # A namespace package has several folders; of two modules with one name the first counts.
        roots = filter(os.path.isdir, spec.submodule_search_locations)  # others are for finders
        files = sorted((it for root in roots for it in _modules_below(root)), key=itemgetter(0))
    digest, size = sha256(), 0
    for name, path in files:
        with open(path, "rb") as stream:
            size += os.fstat(stream.fileno()).st_size
            code = sha256_of(stream.fileno())
        digest.update(f"{code} {name}\n".encode("utf-8", "surrogateescape"))
    return LockedFile(top, digest.hexdigest(), size)


def _modules_below(root: str) -> list[tuple[str, str]]:
    """Return the modules in a directory and below it: the path within it, and the path.

    Modules are imported from behind links to directories too; each directory is listed once. Raises
    `OSError` if one cannot be listed.
    """

    def fail(error: OSError) -> None:
        raise error

    suffixes = tuple(all_suffixes())
    found: list[tuple[str, str]] = []
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(root, onerror=fail, followlinks=True):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if name != _COMPILED)
        paths = (os.path.join(folder, name) for name in names if name.endswith(suffixes))
        found += [(os.path.relpath(path, root), path) for path in paths if os.path.isfile(path)]
    return found
