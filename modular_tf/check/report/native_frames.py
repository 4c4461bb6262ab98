"""Native frames with functions and source lines, which addr2line of binutils finds in files.

Plugins decide what their files hold: reading one may take hours or all memory, and by now it may be
a pipe. So addr2line has limits, and frames stay as they are where it comes to no end.
"""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import tempfile
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from modular_tf.discovery.elf.file import ElfFile
from modular_tf.errors import ModularTFError
from modular_tf.native.ffi import ffi, lib
from modular_tf.processes.ending import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from modular_tf.check.outcome import Incident, Outcome

    Frame = tuple[str, bool]  # and whether its address is one that a call returns to

_SECONDS = 30
_MOST_OF_A_NAME = 4096
_LIMITS = {
    resource.RLIMIT_CORE: 0,
    resource.RLIMIT_CPU: _SECONDS,
    resource.RLIMIT_DATA: 2 << 30,
    resource.RLIMIT_FSIZE: 8 << 20,  # of its output
}
_INLINED = " (inlined by) "


def with_named_frames(outcomes: Iterable[Outcome], files: Iterable[str]) -> tuple[Outcome, ...]:
    """Return outcomes whose native frames name function and source line where a file has them.

    A frame was `FILE 0xOFFSET` or `FILE SYMBOL+0xOFFSET`, and becomes `FILE FUNCTION at
    SOURCE:LINE`, one for each function that the compiler inlined there; `FILE FUNCTION at 0xOFFSET`
    where only the function is known. C++ names are readable. Of the paths that frames name, only
    those of `files`, the plugin's own, are read.
    """
    known = tuple(outcomes)
    incidents = [outcome.incident for outcome in known if outcome.incident is not None]
    frames = dict.fromkeys(frame for incident in incidents for frame in _frames(incident))
    names: dict[Frame, Sequence[str]] = {frame: [_readable(frame[0])] for frame in frames}
    for file in files:
        own = [frame for frame in frames if frame[0].startswith(f"{file} ")]
        with suppress(OSError, ModularTFError, subprocess.SubprocessError):
            names |= _names_in(file, own)
    return tuple(_with_names(outcome, names) for outcome in known)


def _frames(incident: Incident) -> Iterator[Frame]:
    for number, frame in enumerate(incident.backtrace):
        # After the first one come the addresses that calls return to; so does the first of an
        # exit, which no signal interrupted.
        yield frame, number > 0 or incident.exit_status is not None


def _with_names(outcome: Outcome, names: Mapping[Frame, Sequence[str]]) -> Outcome:
    incident = outcome.incident
    if incident is None or not incident.backtrace:
        return outcome
    backtrace = tuple(name for frame in _frames(incident) for name in names[frame])
    return replace(outcome, incident=replace(incident, backtrace=backtrace))


def _names_in(file: str, frames: Sequence[Frame]) -> dict[Frame, Sequence[str]]:
    """Return the names of frames that lie in a file, as far as it has them."""
    program = shutil.which("addr2line")
    if program is None or not frames:
        return {}
    addresses = {}
    with ElfFile(file) as elf:
        start = elf.image.extent[0] // resource.getpagesize() * resource.getpagesize()
        for frame, returns in frames:
            symbol, _, offset = frame[len(file) + 1 :].rpartition("+")
            found = elf.find(symbol) if symbol else None
            with suppress(ValueError):
                address = int(offset, 16) + (start if found is None else found.value) - returns
                if address >= 0 and (found is not None or not symbol):
                    addresses[frame, returns] = address
        question = "".join(f"{address:#x}\n" for address in addresses.values())
        answers: list[list[str]] = []
        for line in _answer([program, "-fipe", file], question).splitlines():
            if line.startswith(_INLINED) and answers:
                answers[-1].append(line.removeprefix(_INLINED))
            else:
                answers.append([line])
        if len(answers) != len(addresses):  # a function has a line break in its name
            return {}
        named = {
            frame: [_named(line, elf, address, frame[0]) for line in lines]
            for (frame, address), lines in zip(addresses.items(), answers, strict=True)
        }
    return {frame: [f"{file} {it}" for it in names] for frame, names in named.items() if all(names)}


def _named(line: str, elf: ElfFile, address: int, frame: str) -> str:
    """Return the name of a frame by a line of addr2line, `FUNCTION at SOURCE:LINE`; "" for none."""
    function, _, place = line.partition(" at ")
    source, _, number = place.partition(" (discriminator ")[0].rpartition(":")
    name = plain(demangled(function), _MOST_OF_A_NAME)
    if source != "??" and number.isdigit():
        source = plain(os.path.normpath(source)[-_MOST_OF_A_NAME:], _MOST_OF_A_NAME)
        return f"{name} at {source}:{number}"
    offset = frame.rpartition(" ")[2]
    if "+" in offset or function.startswith("??"):
        return ""
    found = elf.find(function)  # addr2line names the exported function before the address
    is_inside = found is None or found.value <= address < found.value + found.size
    return f"{name} at {offset}" if is_inside else ""


def _answer(command: Sequence[str], question: str) -> str:
    """Return what a program writes, with limits on its time, memory and output; "" if it fails."""
    environment = {**os.environ, "LC_ALL": "C"}
    with (
        tempfile.TemporaryFile() as output,
        subprocess.Popen(  # noqa: S603
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=subprocess.DEVNULL,
        ) as child,
    ):
        try:
            for kind, most in _LIMITS.items():
                _, hard = resource.prlimit(child.pid, kind)
                limit = most if hard == resource.RLIM_INFINITY else min(most, hard)
                resource.prlimit(child.pid, kind, (limit, limit))
            child.communicate(question.encode(), timeout=_SECONDS)
        finally:
            child.kill()
        output.seek(0)
        return "" if child.returncode else output.read().decode(errors="replace")


def _readable(frame: str) -> str:
    """Return a frame whose symbol, if it has one, is readable."""
    file, _, place = frame.rpartition(" ")
    symbol, plus, offset = place.rpartition("+")
    return f"{file} {demangled(symbol)}{plus}{offset}"


def demangled(name: str) -> str:
    """Return the readable form of a mangled C++ name; any other name as it is."""
    text = ffi.new("char[]", _MOST_OF_A_NAME)
    raw = os.fsencode(name)
    if not raw.startswith(b"_Z") or b"\0" in raw or not lib.mtf_demangle(raw, text, len(text)):
        return name
    return os.fsdecode(ffi.string(text))
