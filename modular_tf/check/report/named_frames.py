"""Native frames with their names, which a process of its own looks up in the plugin's files.

Plugins decide what their files hold: reading one may take hours or all memory, and by now it may be
a pipe. So that process has limits, and frames stay as they are where it comes to no end.
"""

from __future__ import annotations

import json
import os
import subprocess
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from modular_tf.check.report.native_frames import readable
from modular_tf.processes.interpreter import command_like_here, find_interpreter

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from modular_tf.check.outcome import Incident, Outcome

    Frame = tuple[str, bool]  # and whether its address is one that a call returns to

_READER = "modular_tf.check.report.native_frames"
_SECONDS = 30.0


def with_named_frames(outcomes: Iterable[Outcome], files: Iterable[str]) -> tuple[Outcome, ...]:
    """Return outcomes whose native frames say function and source line where a file has them.

    A frame was `FILE 0xOFFSET` or `FILE SYMBOL+0xOFFSET`, and becomes
    `FILE FUNCTION+0xOFFSET at SOURCE:LINE`; C++ names are readable.

    Args:
        outcomes: The outcomes.
        files: The plugin's own files, absolute: no others are read, whatever a frame names.
    """
    known = tuple(outcomes)
    incidents = [outcome.incident for outcome in known if outcome.incident is not None]
    frames = dict.fromkeys(frame for incident in incidents for frame in _frames(incident))
    names = {frame: readable(frame[0]) for frame in frames}
    own = frozenset(files)
    names |= _names_in([frame for frame in frames if _is_of(frame, own)], own)
    return tuple(_with_names(outcome, names) for outcome in known)


def _frames(incident: Incident) -> Iterator[Frame]:
    for number, frame in enumerate(incident.backtrace):
        # Behind the first one stand the addresses that calls return to; so does the first of an
        # exit, which no signal interrupted.
        yield frame, number > 0 or incident.exit_status is not None


def _is_of(frame: Frame, files: Collection[str]) -> bool:
    return any(frame[0].startswith(f"{file} ") for file in files)


def _with_names(outcome: Outcome, names: Mapping[Frame, str]) -> Outcome:
    incident = outcome.incident
    if incident is None or not incident.backtrace:
        return outcome
    backtrace = tuple(names[frame] for frame in _frames(incident))
    return replace(outcome, incident=replace(incident, backtrace=backtrace))


def _names_in(frames: Sequence[Frame], files: Collection[str]) -> dict[Frame, str]:
    """Return the names of frames; none where the reader is not installed or comes to no end."""
    python = find_interpreter()
    if not frames or python is None or not _can_read():
        return {}
    command = command_like_here(python, _READER, {"parent": os.getpid()})
    asked = json.dumps({"frames": frames, "files": [*files]})
    with suppress(OSError, subprocess.SubprocessError, TypeError, ValueError):
        ended = subprocess.run(  # noqa: S603
            command,
            input=asked.encode(),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=True,
        )
        said = ended.stdout.splitlines()[-1:]  # the user's settings may print, too
        return dict(zip(frames, json.loads(b"".join(said)), strict=True))
    return {}


def _can_read() -> bool:
    with suppress(ImportError, ValueError):
        return find_spec("elftools.elf.elffile") is not None
    return False
