"""The RECORDs of distributions: a row for each installed file, with the hash that it had.

A RECORD is CSV and may have tens of thousands of rows, of which every start searches all that are
new. So rows that do not match are skipped without parsing.
"""

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

_ALGORITHMS = ("sha256", "sha384", "sha512")  # weaker ones are not used
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


class _RecordedHash(NamedTuple):
    """A file's hash in a RECORD."""

    label: str  # name and version of the distribution
    record: str
    written: str  # the hash, as it is written
    algorithm: str | None  # a name that hashlib knows; None for a hash that is not used
    digest: bytes  # empty where it cannot be read


class Records:
    """The RECORDs of installed distributions, read at their first use."""

    def __init__(self, python_path: Iterable[str], paths: PathJudge, *, required: bool) -> None:
        self._python_path = tuple(python_path)
        self._paths = paths
        self._required = required
        self._installed: dict[str, InstalledDistribution] | None = None
        self._read: dict[str, bytes] = {}  # by its path; empty for one that is not used

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
                    f" is not used: it is none of {', '.join(_ALGORITHMS)}"
                )
            elif (found := file.digest(recorded.algorithm)) != recorded.digest:
                message = (
                    f"{file.path} is not what {recorded.label} installed: its"
                    f" {recorded.algorithm} is {found.hex()}, {recorded.record} has"
                    f" {recorded.digest.hex() or repr(recorded.written)}"
                )
                return TrustVerdict.of_problem(
                    Violation(rules.RECORD_HASH, message, path=file.path)
                )
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
        """Yield the hashes of a file in the first distribution that lists it.

        That is the one of its unpacked wheel, the named one, or any other if a RECORD is required.
        """
        if self._installed is None:
            installed = installed_distributions(self._python_path)
            self._installed = {found.name: found for found in installed}
        named = [self._installed[distribution]] if distribution in self._installed else []
        others = self._installed.values() if self._required else ()
        # parts of the names that a RECORD may have for it, without quotes and the like
        names = {os.path.basename(path) for path in (file.path, file.real_path)}
        parts = {max(re.split(rb'[",\r\n]', os.fsencode(name)), key=len) for name in names}
        for found in filter(None, (unpacked_wheel(file.path), *named, *others)):
            record = os.path.join(found.metadata_directory, "RECORD")
            if record not in self._read:
                try:
                    is_safe = not self._required or self._paths.judge(record).offence is None
                    self._read[record] = found.read("RECORD") if is_safe else b""
                except (OSError, ExcessiveMetadataError) as error:  # discovery reports it
                    raise_shortage(error)
                    self._read[record] = b""
            rows = dict.fromkeys(
                found_hash.decode("ascii", "replace")
                for part in parts
                for row in rows_that_name(self._read[record], part)
                if (found_hash := row.hash.strip())
                and _leads_to(file, os.path.join(found.location, row.path))
            )
            for written in rows:
                yield _RecordedHash(found.label, record, written, *read_hash(written))
            if rows:
                return


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
