"""Getting the plugins of a wheel into the drop-in directory, whatever Python the wheel is for.

Plugins do not use Python, so the wheel for any Python serves on all of them. pip or uv downloads it
from the user's package index; nothing of it is installed or run. All of it is compared with its
RECORD. Its plugins, their companions and its metadata become the folder `NAME.wheel`, with the
paths that an installer would give them: discovery and trust treat it as an installed distribution.
"""

from __future__ import annotations

import csv
import errno
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from modular_tf.discovery.search import discover_named
from modular_tf.discovery.sources.distributions import exports_init_symbol, libraries_in_record
from modular_tf.discovery.sources.installed import (
    UNPACKED_SUFFIX,
    ExcessiveMetadataError,
    installed_distributions,
)
from modular_tf.discovery.sources.search_log import is_plugin_file_name
from modular_tf.discovery.trust.record import read_hash
from modular_tf.errors import (
    DataLossError,
    ElfError,
    FailedPreconditionError,
    InvalidArgumentError,
    ModularTFError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnavailableError,
    UnknownError,
)
from modular_tf.loading.published import known_packages
from modular_tf.rules import loading as rules
from modular_tf.service.output_file import make_directories

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import IO

    from modular_tf.discovery.sources.installed import InstalledDistribution
    from modular_tf.loading.published import KnownPackage

__all__ = ["FetchedWheel", "fetch", "known_package"]

_PACKAGE = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")
_TEMPORARY_PREFIX = ".modular-tf-fetch-"
_OLDEST_PYTHON, _NEWEST_PYTHON = 9, max(14, sys.version_info.minor)
_UNSIGNED = ("RECORD", "RECORD.jws", "RECORD.p7s")  # a RECORD has no hash of these
_OF_INSTALLERS = ("INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json")
_NO_SUCH_WHEEL = re.compile(r"No matching distribution found|No solution found")
_NO_INDEX = re.compile(
    r"(?:WARNING: Retrying .* after |WARNING: (?=40[137] )|(?=.*Could not fetch URL)"
    r"|(?=.*[Ff]ailed to fetch))(.*)"
)
_REPORTED = re.compile(r"^(?:ERROR: |error: |\s*\W*(?=Because )|\s*Caused by: )(.+)$", re.MULTILINE)
_OF_ANOTHER_MACHINE = {rules.WORD_SIZE.id, rules.BYTE_ORDER.id, rules.MACHINE.id}
_AT_ONCE = 16 << 20
_LONGEST_NAME = 255
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NO_SUCH_PATH = (errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG)
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST)


class FetchedWheel(NamedTuple):
    """A wheel whose plugins are in a directory."""

    name: str  # of the distribution, normalised
    version: str
    folder: str  # with its plugins
    plugins: tuple[str, ...]  # their paths
    changed: bool  # the folder is new or was replaced; otherwise it was there already


def known_package(name: str) -> KnownPackage:
    """Return the package with a name, in any spelling; NotFoundError if it has no known plugins."""
    wanted = re.sub(r"[-_.]+", "-", name).lower()
    known = {package.name: package for package in known_packages()}
    if wanted in known:
        return known[wanted]
    close = get_close_matches(wanted, known, n=1)
    hint = f"did you mean {close[0]}? " if close else ""
    raise NotFoundError(
        f"no package {name!r} is known to have plugins; {hint}known are {', '.join(known)}; name"
        " the wheel of any other package with --from WHEEL"
    )


def fetch(
    package: KnownPackage | None,
    version: str | None,
    directory: str,
    *,
    wheel: str | None = None,
    progress: IO[str] | None = None,
) -> FetchedWheel:
    """Put the plugins of a wheel into a directory, replacing those of another version.

    Two at once wait for each other. When an error or an interrupt ends it, the directory is as it
    was; what a killed process leaves there is not searched for plugins, and the next call removes
    it. A library that is in use stays mapped. [any thread]

    Args:
        package: The package; None for what `wheel` has.
        version: Its version; None for the one that the table of packages names, or the newest.
        directory: The drop-in directory, or another one; it is made where there is none.
        wheel: The file to take instead of downloading one.
        progress: A file where pip may show its progress; None for nowhere.

    Raises:
        NotFoundError: There is no such wheel for this machine, it has no plugin, or neither pip
            nor uv is there.
        UnavailableError: The package index cannot be read.
        DataLossError: The wheel is damaged, or not what its RECORD says.
        InvalidArgumentError: The wheel is of another package or version.
        FailedPreconditionError: The plugins are for another machine.
        ResourceExhaustedError: The disk is full.
        PermissionDeniedError: The directory cannot be written.
        UnknownError: pip or uv failed for another reason.
    """
    version = version or (package.version if package is not None and wheel is None else None)
    directory = os.path.abspath(directory)
    with _explained(directory):
        make_directories(directory)
        with _alone_in(directory, progress), _temporary_folder(directory) as temporary:
            if package is not None and version is not None and wheel is None:
                present = _present(os.path.join(directory, package.name + UNPACKED_SUFFIX))
                if present is not None and _is_version(present.version, version):
                    return present
            content = os.path.join(temporary, "content")
            if wheel is not None:
                _unpack(wheel, content)
            elif package is not None:
                _download(package, version, temporary, content, progress)
            return _take(content, package, version, directory, temporary)


def _take(
    content: str, package: KnownPackage | None, version: str | None, directory: str, temporary: str
) -> FetchedWheel:
    """Move the plugins of an unpacked wheel to their place."""
    distribution, rows = _compared_with_record(content)
    wanted = f"{package.name if package else distribution.name} {version or distribution.version}"
    if (package is not None and package.name != distribution.name) or not (
        version is None or _is_version(distribution.version, version)
    ):
        raise InvalidArgumentError(
            f"the wheel is of {distribution.label}, not of {wanted}; name the right one"
        )
    plugins = _plugins_in(distribution)
    _require_this_machine(plugins, distribution.label)
    _reduce(distribution, rows, _with_companions(plugins, content))
    folder = os.path.join(directory, distribution.name + UNPACKED_SUFFIX)
    present = _present(folder)
    changed = present is None or _record_of(folder) != _record_of(content)
    if changed:
        _replace(folder, content, temporary)
    paths = tuple(os.path.join(folder, os.path.relpath(path, content)) for path in plugins)
    return FetchedWheel(distribution.name, distribution.version, folder, paths, changed)


def _is_version(version: str, wanted: str) -> bool:
    """Return whether a version is the wanted one; zeros at the end do not count."""
    return re.sub(r"(\.0)+$", "", version) == re.sub(r"(\.0)+$", "", wanted)


# -- the directory -------------------------------------------------------------------------------


@contextmanager
def _explained(directory: str) -> Iterator[None]:
    """Turn errors of the system into errors that say what to do."""
    try:
        yield
    except (DataLossError, NotFoundError, UnavailableError, FailedPreconditionError):
        raise
    except OSError as error:
        if error.errno in _FULL:
            raise _full(directory) from error
        if error.errno in _NOT_WRITABLE and not isinstance(error, PermissionDeniedError):
            raise PermissionDeniedError(
                f"{error.filename or directory} cannot be written: {error.strerror}; name another"
                " directory with --to"
            ) from error
        raise


def _full(directory: str) -> ResourceExhaustedError:
    existing = directory
    while not os.path.isdir(existing):
        existing = os.path.dirname(existing)
    free = shutil.disk_usage(existing).free >> 20
    return ResourceExhaustedError(
        f"the disk of {directory} is full ({free} MiB are free); free some space, or name another"
        " directory with --to"
    )


@contextmanager
def _alone_in(directory: str, progress: IO[str] | None) -> Iterator[None]:
    """Wait until no other process fetches into a directory, and keep others waiting."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if progress is not None:
                progress.write(f"waiting for the other process that fetches into {directory}\n")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def _temporary_folder(directory: str) -> Iterator[str]:
    """Make a folder that is removed at the end, with those of processes that were killed."""
    for name in os.listdir(directory):
        if name.startswith(_TEMPORARY_PREFIX):
            shutil.rmtree(os.path.join(directory, name), ignore_errors=True)
    path = tempfile.mkdtemp(prefix=_TEMPORARY_PREFIX, dir=directory)
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


def _replace(folder: str, content: str, temporary: str) -> None:
    """Rename the new content to its place, and the old one away; for an instant none is there."""
    old = os.path.join(temporary, "old")
    try:
        with suppress(FileNotFoundError):
            os.rename(folder, old)
        os.rename(content, folder)
    except BaseException:
        with suppress(OSError):
            os.rename(old, folder)
        raise


def _present(folder: str) -> FetchedWheel | None:
    """Return the wheel whose plugins are in a folder; None where it is not whole."""
    try:
        distribution, _ = _compared_with_record(folder)
        plugins = tuple(_plugins_in(distribution))
    except (DataLossError, NotFoundError, FailedPreconditionError):
        return None
    return FetchedWheel(distribution.name, distribution.version, folder, plugins, changed=False)


def _record_of(folder: str) -> list[bytes]:
    return [found.read("RECORD") for found in installed_distributions((folder,))]


# -- the wheel -----------------------------------------------------------------------------------


def _unpack(wheel: str, content: str) -> None:
    """Unpack a wheel; nothing is written outside the folder."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            _extract(archive, content)
    except (ModularTFError, MemoryError):
        raise
    except OSError as error:
        if error.filename == wheel:
            raise NotFoundError(
                f"{wheel} cannot be read: {error.strerror}; name a wheel that was downloaded with"
                " `pip download --no-deps`"
            ) from None
        if error.errno in _NO_SUCH_PATH:
            _damaged(f"{error.filename} cannot be made: {error.strerror}")
        if error.errno not in (None, errno.EINVAL):  # those of bzip2 and of a wrong offset
            raise
        _damaged(f"{wheel} cannot be unpacked: {error}")
    except Exception as error:  # noqa: BLE001  (each compression has a class of its own)
        _damaged(f"{wheel} cannot be unpacked: {error}")


def _extract(archive: zipfile.ZipFile, content: str) -> None:
    members = archive.infolist()
    for member in members:
        _require_inside(member.filename.rstrip("/"))
    disk = os.path.dirname(content)
    if sum(member.file_size for member in members) > shutil.disk_usage(disk).free:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    archive.extractall(content)


def _require_inside(path: str) -> None:
    if os.path.normpath(path) != path or path.startswith(("..", "/")) or "\0" in path:
        _damaged(f"it has a file with the path {path!r}")


def _damaged(what: str) -> NoReturn:
    raise DataLossError(f"the wheel is damaged: {what}; download it again") from None


def _compared_with_record(
    folder: str,
) -> tuple[InstalledDistribution, dict[str, list[str]]]:
    """Return the distribution in a folder, and the rows of its RECORD by path."""
    found = [one for one in installed_distributions((folder,)) if one.version]
    if len(found) != 1:
        _damaged(f"it has {len(found)} folders NAME-VERSION.dist-info, not one")
    (distribution,) = found
    if not _PACKAGE.fullmatch(distribution.name):
        _damaged(f"{distribution.name!r} is no name of a package")
    metadata = os.path.basename(distribution.metadata_directory)
    unsigned = {f"{metadata}/{name}" for name in _UNSIGNED}
    try:
        record = distribution.read("RECORD").decode("utf-8")
        rows = {row[0]: row for row in csv.reader(record.splitlines()) if row}
    except (ExcessiveMetadataError, UnicodeDecodeError, csv.Error) as error:
        _damaged(f"its RECORD cannot be read: {error}")
    if not record:
        _damaged("it has no RECORD")
    for path in rows.keys() - unsigned:
        _compare(folder, path, rows[path])
    surplus = set(_files_in(folder)) - rows.keys() - unsigned
    if surplus:
        _damaged(f"its RECORD does not list {min(surplus)}")
    return distribution, rows


def _compare(folder: str, path: str, row: list[str]) -> None:
    """Compare a file with its row: path, hash, size."""
    _require_inside(path)
    algorithm, digest = read_hash(row[1]) if len(row) > 1 else (None, b"")
    if algorithm is None or not digest:
        _damaged(f"its RECORD has no hash of {path}")
    found, size = hashlib.new(algorithm), 0
    try:
        with open(os.path.join(folder, path), "rb") as file:
            while block := file.read(_AT_ONCE):
                found.update(block)
                size += len(block)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError):
        _damaged(f"{path} is missing, which its RECORD lists")
    if found.digest() != digest or row[2:3] not in ([], [""], [str(size)]):
        _damaged(f"{path} is not what its RECORD says ({algorithm}, {size} bytes)")


def _files_in(folder: str) -> Iterator[str]:
    for parent, _, names in os.walk(folder):
        for name in names:
            yield os.path.relpath(os.path.join(parent, name), folder)


def _plugins_in(distribution: InstalledDistribution) -> list[str]:
    """Return the libraries of a distribution that are plugins."""
    plugins, unreadable = [], []
    for name in libraries_in_record(distribution.read("RECORD")):
        path = os.path.join(distribution.location, name)
        try:
            if exports_init_symbol(path):
                plugins.append(path)
        except ElfError as error:
            unreadable.append(error)
    if plugins:
        return plugins
    if unreadable:
        raise FailedPreconditionError(
            f"no library of {distribution.label} can be read here: {unreadable[0].message}; name a"
            f" wheel for this machine ({platform.machine()}) with --from WHEEL"
        )
    raise NotFoundError(
        f"{distribution.label} has no plugin: no library of it exports an init symbol; name another"
        " version, or another wheel with --from WHEEL"
    )


def _require_this_machine(plugins: list[str], label: str) -> None:
    """Raise FailedPreconditionError if no plugin is for this machine."""
    from modular_tf.discovery.linking.host_exports import HostExports  # noqa: PLC0415
    from modular_tf.discovery.probe import Prober  # noqa: PLC0415  (not for help)

    wrong = []
    with Prober(HostExports()) as prober:
        for path in plugins:
            (candidate,) = discover_named(path).candidates
            problems = prober.probe(candidate, link=False).problems
            wrong += [problem for problem in problems if problem.rule in _OF_ANOTHER_MACHINE]
    if len(wrong) == len(plugins):
        raise FailedPreconditionError(
            f"{label} is for another machine: {wrong[0].message}; name a wheel for this machine"
            f" ({platform.machine()}) with --from WHEEL"
        )


def _with_companions(plugins: list[str], content: str) -> set[str]:
    """Return the plugins with the libraries of their wheel whose names are in them, and so on.

    These are the libraries that the linker loads with them, and those that they open by name.
    """
    libraries = [path for path in _files_in(content) if is_plugin_file_name(path)]
    names = {path: os.fsencode(os.path.basename(path)) for path in libraries}
    wanted: set[str] = set()
    unread = {os.path.relpath(path, content) for path in plugins}
    while unread:
        path = unread.pop()
        wanted.add(path)
        found = _names_in(os.path.join(content, path), set(names.values()))
        unread |= {other for other in libraries if names[other] in found} - wanted
    return wanted


def _names_in(path: str, names: set[bytes]) -> set[bytes]:
    """Return the names that are anywhere in a file."""
    found: set[bytes] = set()
    end = b""
    with open(path, "rb") as file:
        while block := file.read(_AT_ONCE):
            part = end + block
            found |= {name for name in names if name in part}
            end = part[-_LONGEST_NAME:]
    return found


def _reduce(
    distribution: InstalledDistribution, rows: Mapping[str, list[str]], wanted: set[str]
) -> None:
    """Remove all but the wanted libraries and the metadata, from the folder and from RECORD."""
    content = distribution.location
    metadata = os.path.basename(distribution.metadata_directory)
    for path in [*_files_in(content)]:
        folder, name = os.path.split(path)
        if path not in wanted and (folder != metadata or name in _OF_INSTALLERS):
            os.remove(os.path.join(content, path))
        else:
            os.chmod(os.path.join(content, path), 0o644)
    for parent, _, _ in os.walk(content, topdown=False):
        os.chmod(parent, 0o755)  # noqa: S103  (as directories of users are)
        with suppress(OSError):  # it is not empty
            os.rmdir(parent)
    kept = set(_files_in(content))
    with open(distribution.path_of("RECORD"), "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerows(rows[path] for path in sorted(rows.keys() & kept))


# -- pip and uv ----------------------------------------------------------------------------------


def _download(
    package: KnownPackage,
    version: str | None,
    temporary: str,
    content: str,
    progress: IO[str] | None,
) -> None:
    """Download and unpack the wheel of a package: of the newest Python that there is one for."""
    requirement = package.name if version is None else f"{package.name}=={version}"
    pythons = [f"3.{minor}" for minor in range(_NEWEST_PYTHON, _OLDEST_PYTHON - 1, -1)]
    reports = []
    for python in dict.fromkeys((package.python, *pythons)):
        command = _command(requirement, python, temporary, content)
        done = subprocess.run(  # noqa: S603  (the command is ours, the names are checked)
            command,
            stdin=subprocess.DEVNULL,
            stdout=progress or subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            env={**os.environ, "TMPDIR": temporary},  # nothing is left elsewhere
            check=False,
        )
        if done.returncode == 0:
            wheels = [name for name in os.listdir(temporary) if name.endswith(".whl")]
            for name in wheels:
                _unpack(os.path.join(temporary, name), content)
            with suppress(FileNotFoundError):
                os.remove(os.path.join(content, ".lock"))  # of uv
            return
        reports.append(_no_such_wheel(requirement, command, done.stderr))
    informative = [report for report in reports if "versions: none" not in report]
    oldest = pythons[-1]
    raise NotFoundError(
        f"there is no wheel of {requirement} for this machine ({platform.machine()}) and any Python"
        f" from {oldest} to {pythons[0]}: {[*informative, *reports][0]}; name a wheel for this"
        " machine with --from WHEEL"
    )


def _command(requirement: str, python: str, temporary: str, content: str) -> list[str]:
    """Return the command that downloads a wheel, or unpacks it where that is what uv does."""
    options = ["--no-deps", "--only-binary=:all:", f"--python-version={python}"]
    pip = find_spec("pip")
    if pip is not None and pip.origin is not None:
        own = ["--no-input", "--disable-pip-version-check", "--dest", temporary]
        # By its folder: `-m pip` would run a folder `pip` of the working directory.
        folder = os.path.dirname(pip.origin)
        return [sys.executable, folder, "download", *options, *own, requirement]
    uv = shutil.which("uv")
    if uv is not None:
        own = ["--python", sys.executable, "--link-mode=copy", "--target", content]
        return [uv, "pip", "install", *options, *own, requirement]
    raise NotFoundError(
        "neither pip nor uv is there to download a wheel; install pip (`python -m ensurepip`) or"
        " uv, or name a wheel that you have with --from WHEEL"
    )


def _no_such_wheel(requirement: str, command: list[str], output: str) -> str:
    """Return the words in which pip or uv reports that there is no such wheel."""
    tool = "pip" if command[0] == sys.executable else "uv"
    lines = " ".join(dict.fromkeys(found.strip() for found in _REPORTED.findall(output)))
    said = f"{tool} reports: {' '.join((lines or output).split())[:600]}"
    unread = _NO_INDEX.search(output)
    if unread is not None:
        cause = re.sub(r"<\S+ object at 0x\w+>: ", "", unread[1]).strip()
        raise UnavailableError(
            f"{requirement} cannot be downloaded: {tool} reports: {cause[:600]}; check"
            f" the network and the index that {tool} is configured for, or name a wheel that you"
            " have with --from WHEEL"
        )
    if "No space left" in output:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    if _NO_SUCH_WHEEL.search(output) is None:
        raise UnknownError(f"{requirement} cannot be downloaded: {said}")
    return said
