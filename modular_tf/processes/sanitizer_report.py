"""The report of a sanitizer on a plugin, written before it ended the process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.processes.backtrace import is_host_library

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_BEGIN = re.compile(r"(?:ERROR|WARNING): \w+Sanitizer: |: runtime error: ")
_SUMMARY = re.compile(r"^SUMMARY: (\w+Sanitizer): (.+)$", re.MULTILINE)
_RUNTIME_ERROR = re.compile(r": runtime error: (.+)$", re.MULTILINE)
_FILE = re.compile(r"\(([^()]+)\+0x[0-9a-f]+\)$")
_UNDEFINED = "UndefinedBehaviorSanitizer"


class SanitizerReport(NamedTuple):
    """The report of a sanitizer."""

    sanitizer: str  # such as `AddressSanitizer`
    what: str  # in short: `double-free heap.cc:12 in release`
    # From what is wrong to the summary, as far as they were kept; without empty lines, and without
    # frames from the host's own on.
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.sanitizer} reported {self.what}"


def sanitizer_report(said: str) -> SanitizerReport | None:
    """Find the report in what a process wrote to standard error; None where there is none."""
    summary = _SUMMARY.search(said)
    if summary is not None:
        sanitizer, what = summary.groups()
    elif (error := _RUNTIME_ERROR.search(said)) is not None:
        sanitizer, what = _UNDEFINED, error[1]
    else:
        return None
    return SanitizerReport(sanitizer, what.strip(), _lines(said, summary))


def _lines(said: str, summary: re.Match[str] | None) -> tuple[str, ...]:
    begin = _BEGIN.search(said)
    first = 0 if begin is None else said.rfind("\n", 0, begin.start()) + 1
    last = len(said) if summary is None else summary.start()
    return tuple(_without_host(said[first:last].splitlines()))


def _without_host(lines: Iterable[str]) -> Iterator[str]:
    in_host = False
    for line in lines:
        is_frame = line.lstrip().startswith("#")
        in_host = is_frame and (in_host or is_host_library(_library(line)))
        if line.strip() and not in_host:
            yield line


def _library(frame: str) -> str:
    """Return the file of a frame, "" where it names a source file instead."""
    found = _FILE.search(frame)
    return "" if found is None else found[1]
