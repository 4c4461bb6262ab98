"""The hashes in the RECORDs of distributions, which installers have written."""

from __future__ import annotations

import binascii
import os
import re
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.file_identity import real_path
from modular_tf.discovery.sources.installed import (
    ExcessiveMetadataError,
    installed_distributions,
    unpacked_wheel,
)
from modular_tf.discovery.trust.policy import TrustVerdict
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.discovery.sources.installed import InstalledDistribution
    from modular_tf.discovery.trust.judge import JudgedFile
    from modular_tf.discovery.trust.paths import PathJudge

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A field with the comma, the end of the row or the end of the file behind it. In quotes there may
# be commas and line ends, and a quote is doubled; what follows the closing quote belongs to it.
_FIELD = rb'(?:"((?:[^"]|"")*)"?)?([^,\r\n]*)(,|\r\n?|\n|\Z)'


class RecordRow(NamedTuple):
    """The row of one file in a RECORD."""

    path: str  # as it is written: relative to where the distribution is installed, or absolute
    # Algorithm and value, as `sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU`; blank for a file
    # that has none.
    hash: bytes


def rows_that_name(record: bytes, part: bytes) -> Iterator[RecordRow]:
    """Yield the rows whose path contains a text, in the order of the file.

    `record` may be any bytes; `part` is the text, without quotes, commas and line ends.
    """
    record = record.removeprefix(_BYTE_ORDER_MARK)
    rows = _quoted_rows(record) if b'"' in record else _plain_rows(record, part)
    for path, *more in rows:
        if part in path:
            yield RecordRow(os.fsdecode(path), more[0] if more else b"")


def _plain_rows(record: bytes, part: bytes) -> Iterator[list[bytes]]:
    at = record.find(part)
    while at >= 0:
        end = record.find(b"\n", at)
        end = len(record) if end < 0 else end
        for line in record[record.rfind(b"\n", 0, at) + 1 : end].split(b"\r"):
            yield line.split(b",")
        at = record.find(part, end)


def _quoted_rows(record: bytes) -> Iterator[list[bytes]]:
    row: list[bytes] = []
    for field in re.finditer(_FIELD, record):
        quoted, plain, end = field.groups()
        row.append((quoted or b"").replace(b'""', b'"') + plain)
        if end != b",":
            yield row
            row = []


_ALGORITHMS = ("sha256", "sha384", "sha512")  # weaker ones are not used


class _RecordedHash(NamedTuple):
    """A file's hash in a RECORD."""

    label: str  # name and version of the distribution
    record: str
    written: str  # the hash, as it is written
    algorithm: str | None  # a name that hashlib knows; None for a hash that is not used
    digest: bytes  # empty where it cannot be read


class Records:
    """The RECORDs of installed distributions, read at their first use.

    Where they are required, a file without a hash in one is rejected, and `paths` checks them too.
    """

    def __init__(self, python_path: Iterable[str], paths: PathJudge, *, required: bool) -> None:
        self._python_path = tuple(python_path)
        self._paths = paths
        self._required = required
        self._installed: dict[str, InstalledDistribution] | None = None
        self._read: dict[str, bytes] = {}  # by the metadata directory

    def verdict(
        self, file: JudgedFile, distribution: str | None, otherwise: TrustVerdict
    ) -> TrustVerdict:
        """Return the verdict on a file by its RECORD.

        It is `otherwise` where RECORD says nothing and need not: an editable install lists no
        libraries, and compiled files may come without a hash. Raises `OSError` if the file's bytes
        cannot be read.
        """
        compared = None
        remarks = []
        for recorded in self._hashes_of(file, distribution):
            if recorded.algorithm is None:
                remarks.append(
                    f"the RECORD of {recorded.label} has {recorded.written!r} of {file.path}, which"
                    f" vouches for nothing: it is none of {', '.join(_ALGORITHMS)}"
                )
            elif file.digest(recorded.algorithm) != recorded.digest:
                return _mismatch(file, recorded, recorded.algorithm)
            else:
                compared = compared or recorded
        if compared is not None:
            message = f"it has the {compared.algorithm} of the RECORD of {compared.label}"
            return TrustVerdict(rules.RECORD_HASH, message).remark(*remarks)
        if not self._required:
            return otherwise.remark(*remarks)
        message = "; ".join((f"no distribution's RECORD has a hash of {file.path}", *remarks))
        return TrustVerdict.of_problem(Violation(rules.RECORDED, message, path=file.path))

    def _hashes_of(self, file: JudgedFile, distribution: str | None) -> Iterator[_RecordedHash]:
        """Yield the hashes of a file in the first distribution that lists it."""
        unpacked = unpacked_wheel(file.path)
        others = self._distributions(distribution)
        for found in others if unpacked is None else (unpacked, *others):
            record = os.path.join(found.metadata_directory, "RECORD")
            if self._required and not self._is_safe(record):
                continue
            rows = dict.fromkeys(
                found_hash.decode("ascii", "replace")
                for part in _parts_of_names(file)
                for row in rows_that_name(self._bytes_of(found), part)
                if (found_hash := row.hash.strip())
                and _leads_to(file, os.path.join(found.location, row.path))
            )
            for written in rows:
                yield _RecordedHash(found.label, record, written, *read_hash(written))
            if rows:
                return

    def _distributions(self, name: str | None) -> list[InstalledDistribution]:
        """Return the distribution of this name, and all others after it if a RECORD is required."""
        if self._installed is None:
            installed = installed_distributions(self._python_path)
            self._installed = {found.name: found for found in installed}
        first = [self._installed[name]] if name in self._installed else []
        return [*first, *self._installed.values()] if self._required else first

    def _is_safe(self, record: str) -> bool:
        try:
            return self._paths.judge(record).offence is None
        except OSError as error:
            raise_shortage(error)
            return False

    def _bytes_of(self, distribution: InstalledDistribution) -> bytes:
        directory = distribution.metadata_directory
        if directory not in self._read:
            try:
                self._read[directory] = distribution.read("RECORD")
            except (OSError, ExcessiveMetadataError) as error:  # discovery reports it
                raise_shortage(error)
                self._read[directory] = b""
        return self._read[directory]


def _parts_of_names(file: JudgedFile) -> set[bytes]:
    """Return a part of each name that a RECORD may have for a file, but for quotes and the like."""
    names = {os.path.basename(path) for path in (file.path, file.real_path)}
    return {max(re.split(rb'[",\r\n]', os.fsencode(name)), key=len) for name in names}


def _leads_to(file: JudgedFile, path: str) -> bool:
    try:
        return real_path(path) == file.real_path
    except (OSError, ValueError):  # a row may hold anything
        return False


def read_hash(written: str) -> tuple[str | None, bytes]:
    """Return the algorithm of a hash in a RECORD, None if it is not used, and the digest."""
    algorithm, _, text = written.partition("=")
    algorithm = algorithm.lower()
    if algorithm not in _ALGORITHMS:
        return None, b""
    try:
        from base64 import urlsafe_b64decode  # noqa: PLC0415  (where a hash is compared)

        return algorithm, urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return algorithm, b""


def _mismatch(file: JudgedFile, recorded: _RecordedHash, algorithm: str) -> TrustVerdict:
    message = (
        f"{file.path} is not what {recorded.label} installed: its {algorithm} is"
        f" {file.digest(algorithm).hex()}, {recorded.record} has"
        f" {recorded.digest.hex() or repr(recorded.written)}"
    )
    return TrustVerdict.of_problem(Violation(rules.RECORD_HASH, message, path=file.path))
