"""The hashes that installers leave in the RECORD of a distribution."""

from __future__ import annotations

import binascii
import os
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.installed import installed_distributions
from modular_tf.discovery.problem import Problem
from modular_tf.discovery.trust.verdict import TrustVerdict
from modular_tf.rules import trust as rules

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.discovery.installed import InstalledDistribution
    from modular_tf.discovery.trust.judged_file import JudgedFile
    from modular_tf.discovery.trust.paths import PathJudge

__all__ = ["Records"]

_ALGORITHMS = ("sha256", "sha384", "sha512")  # weaker ones vouch for nothing


class _RecordedHash(NamedTuple):
    """What a RECORD says of a file.

    Attributes:
        label: Name and version of the distribution.
        record: The RECORD.
        algorithm: A name that hashlib knows.
        digest: The hash.
    """

    label: str
    record: str
    algorithm: str
    digest: bytes


class Records:
    """The RECORDs of installed distributions, read when they are asked for.

    Args:
        python_path: Where distributions are installed.
        paths: Judges the RECORDs themselves, where they are to vouch for others.
        required: Whether what no RECORD vouches for is refused.
    """

    def __init__(self, python_path: Iterable[str], paths: PathJudge, *, required: bool) -> None:
        self._python_path = tuple(python_path)
        self._paths = paths
        self._required = required
        self._installed: dict[str, InstalledDistribution] | None = None
        self._read: dict[str, bytes] = {}

    def verdict(self, file: JudgedFile, distribution: str | None) -> TrustVerdict | None:
        """Return what RECORD says of a file; None where it says nothing and need not.

        An editable install lists no libraries, and compiled files may come without a hash.

        Args:
            file: The file.
            distribution: The normalised name of the distribution that brings it, if known.

        Raises:
            OSError: The file's bytes cannot be read.
        """
        recorded = self._hash_of(file, distribution)
        if recorded is None:
            return self._missing(file) if self._required else None
        if file.digest(recorded.algorithm) != recorded.digest:
            message = (
                f"{file.path} is not what {recorded.label} installed: its {recorded.algorithm} is"
                f" {file.digest(recorded.algorithm).hex()}, {recorded.record} has"
                f" {recorded.digest.hex()}"
            )
            return TrustVerdict.of_problem(Problem.of(rules.RECORD_HASH, message, path=file.path))
        message = f"it has the {recorded.algorithm} of the RECORD of {recorded.label}"
        return TrustVerdict(rules.RECORD_HASH.id, message)

    def _missing(self, file: JudgedFile) -> TrustVerdict:
        message = f"no distribution's RECORD has a hash of {file.path}"
        return TrustVerdict.of_problem(Problem.of(rules.RECORDED, message, path=file.path))

    def _hash_of(self, file: JudgedFile, distribution: str | None) -> _RecordedHash | None:
        for found in self._distributions(distribution):
            record = os.path.join(found.metadata_directory, "RECORD")
            if self._required and not self._is_safe(record):
                continue
            for path in _paths_in(found.location, file):
                written = _hash_in(self._bytes_of(found), path)
                if written is not None:
                    return _RecordedHash(found.label, record, *written)
        return None

    def _distributions(self, name: str | None) -> list[InstalledDistribution]:
        """Return the one of this name; where a RECORD is needed, the others behind it."""
        if name is None and not self._required:
            return []
        if self._installed is None:
            installed = installed_distributions(self._python_path)
            self._installed = {found.name: found for found in installed}
        first = [self._installed[name]] if name in self._installed else []
        return [*first, *self._installed.values()] if self._required else first

    def _is_safe(self, record: str) -> bool:
        try:
            return self._paths.judge(record).offence is None
        except OSError:
            return False

    def _bytes_of(self, distribution: InstalledDistribution) -> bytes:
        if distribution.name not in self._read:
            try:
                self._read[distribution.name] = b"\n" + distribution.read("RECORD")
            except OSError:  # discovery reports it (LD-022)
                self._read[distribution.name] = b""
        return self._read[distribution.name]


def _paths_in(location: str, file: JudgedFile) -> dict[str, None]:
    """Return how a RECORD may call a file: by its path from where the distribution is."""
    roots = (location, os.path.realpath(location))
    return dict.fromkeys(
        os.path.relpath(path, root) for path in (file.path, file.real_path) for root in roots
    )


def _hash_in(record: bytes, path: str) -> tuple[str, bytes] | None:
    """Return algorithm and hash from the line of a path; `record` begins with an empty line."""
    raw = os.fsencode(path)
    if b"," in raw or b'"' in raw:
        raw = b'"' + raw.replace(b'"', b'""') + b'"'
    _, found, rest = record.partition(b"\n" + raw + b",")
    if not found:
        return None
    written = rest.partition(b"\n")[0].partition(b",")[0].strip()
    algorithm, _, text = written.decode("ascii", "replace").partition("=")
    return _decoded(algorithm, text)


def _decoded(algorithm: str, text: str) -> tuple[str, bytes] | None:
    if algorithm not in _ALGORITHMS:
        return None
    try:
        from base64 import urlsafe_b64decode  # noqa: PLC0415  (where a hash is compared)

        digest = urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return None
    return algorithm, digest
