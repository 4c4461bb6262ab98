"""Processes of their own that use a plugin as programs of users do, and then end or fork."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.session import random_for
from modular_tf.check.target import Target
from modular_tf.codec import decode, encode
from modular_tf.errors import ModularTFError
from modular_tf.processes.ending import sanitizer_report, signal_name
from modular_tf.processes.interpreter import command_like_here

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

DESTROYED = "everything destroyed"
KEPT = "nothing destroyed"
BUSY = "work outstanding"

_DEVICE_S, _FILESYSTEM_S = 20.0, 40.0  # less than the checks may take
_SHOWN = 500

# What such a process exits with where it cannot use the plugin; no plugin is likely to choose it.
_BLOCKED, _UNSUPPORTED = 41, 42
_HANGS, _DIFFERS, _FAILS, _CRASHES = 51, 52, 53, 54
_AFTER_FORK = {
    _HANGS: "the child does not return",
    _DIFFERS: "the child reads something else",
    _FAILS: "the child cannot read",
    _CRASHES: "the child does not end with status 0",
}
_CHILD_S = 8.0
_LOOK_EVERY_S = 0.02
_SETTLE_S = 0.5  # until threads that the plugin has started wait for work

_SIZE = (1 << 20) + 1
_OUTSTANDING = 64  # copies of a MiB: more than any device has done by the end of the process

_kept: object = None  # what the function returned, in such a process, to its end


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended.

    Attributes:
        status: Its exit status, negative for a signal.
        last_output: The end of its standard error, or the report of a sanitizer there.
    """

    status: int
    last_output: str


def run_in_new_process(function: str, arguments: Mapping[str, Any], seconds: float) -> Ended | None:
    """Call a function of this module in a new interpreter, and return how that ended.

    None is returned where it did not end and was killed. Raises `Blocked` or `Unsupported` where
    the function does.
    """
    job = {"function": function, "arguments": arguments}
    try:
        done = subprocess.run(  # noqa: S603  (our own interpreter and text)
            command_like_here(sys.executable, __name__, job), stdin=subprocess.DEVNULL,
            capture_output=True, text=True, errors="replace", timeout=seconds, check=False,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return None
    last_output = done.stderr.strip()[-_SHOWN:]
    if done.returncode in {_BLOCKED, _UNSUPPORTED}:
        raise _reason(done.returncode, done.stderr.strip().rpartition("\n")[2])
    report = sanitizer_report(done.stderr)
    return Ended(done.returncode, last_output if report is None else str(report))


def serve(*, function: str, arguments: Mapping[str, Any]) -> None:
    """Call the function, in such a process; see `run_in_new_process`."""
    global _kept  # noqa: PLW0603  (of the process, which has no other use)
    try:
        _kept = globals()[function](**arguments)
    except (Blocked, Unsupported, ModularTFError) as error:
        # The last output of the plugin stands above.
        sys.stderr.write(f"\n{json.dumps(Blocked.by(error).as_entry())}")
        sys.exit(_UNSUPPORTED if isinstance(error, Unsupported) else _BLOCKED)


def _reason(status: int, last_line: str) -> Blocked | Unsupported:
    """Return what the function raised, or what the plugin wrote behind that."""
    with suppress(ValueError):
        match json.loads(last_line):
            case {"blocked": str(why), "see": list(see), "wants_root": bool(wants_root)}:
                if status == _UNSUPPORTED:
                    return Unsupported(why)
                return Blocked(why, *see, wants_root=wants_root)
    why = last_line[-_SHOWN:]
    return Unsupported(why) if status == _UNSUPPORTED else Blocked(why)


# -- ending ----------------------------------------------------------------------------------------


def expect_clean_end(target: Target, way: str, path: str = "") -> None:
    """Demand that a process which has used a device or a filesystem ends as if it had not.

    `way` is what becomes of what it has made first: `DESTROYED`, `KEPT` or `BUSY`; `path` names no
    file. Raises `Deviation` where the process crashes, does not end, or ends with another status.
    """
    given = {"target": encode(target), "way": way, "path": path}
    seconds = _FILESYSTEM_S if path else _DEVICE_S
    ended = run_in_new_process("use", given, seconds)
    expected = "it exits with status 0"
    if ended is None:
        found = f"it still ran after {seconds:.0f} s"
        raise Deviation(f"a process does not end, with {way}", expected=expected, found=found)
    if ended.status:
        status = ended.status
        found = signal_name(-status) if status < 0 else f"exit status {status}"
        found += f"; its last output: {ended.last_output}" if ended.last_output else ""
        raise Deviation(f"a process fails at its end, with {way}", expected=expected, found=found)


def use(target: dict[str, Any], way: str, path: str) -> object:
    """In that process: use the plugin, and return what must live until the process ends."""
    decoded = decode(Target, target)
    return _use_filesystem(decoded, path) if path else _use_device(decoded, way)


def _use_filesystem(target: Target, path: str) -> object:
    from modular_tf.check.filesystem.session import FilesystemSession  # noqa: PLC0415  (one of two)

    session = FilesystemSession(target)
    # Whatever it answers: what matters is that clients, threads and caches have come to life.
    for operation in ("path_exists", "new_random_access_file", "get_children"):
        if session.access.offers(operation):
            session.access.call(operation, path)
    return session


def _use_device(target: Target, way: str) -> object:
    from modular_tf.check.device.session import DeviceSession  # noqa: PLC0415  (one of two)
    from modular_tf.check.device.workspace import Workspace, prepared  # noqa: PLC0415  (likewise)

    session = DeviceSession(target)
    device = Workspace(session.access, target, random_for(target, way))
    memory, block, stream = device.memory(_SIZE), device.host_block(_SIZE), device.stream()
    for _ in range(_OUTSTANDING if way == BUSY else 1):
        # From the plugin's memory: the interpreter frees its own while the stream still reads.
        prepared(device.memcpy_htod(stream, memory, block, _SIZE))
    device.marked(stream)
    if way != BUSY:
        device.done(stream)
    if way == DESTROYED:
        device.close()
        session.close()
    return session, device


# -- forking ---------------------------------------------------------------------------------------


def expect_use_after_fork(fs: FilesystemWorkspace, check_id: str) -> None:
    """Demand that a forked child can read a file that its parent could, and ends.

    Raises `Deviation` where it cannot, or does not end, and `Blocked` where the parent cannot.
    """
    target = fs.target
    if not target.options.prepared:  # its roots lie in the check's own, and are removed with it
        target = replace(target, root=fs.root)
    given = {"target": encode(target), "check_id": check_id}
    ended = run_in_new_process("use_and_fork", given, _FILESYSTEM_S)
    if ended is None:
        raise Blocked("a process that reads a file does not end")
    if ended.status in _AFTER_FORK:
        raise Deviation(
            "a forked child cannot use the filesystem that it inherits",
            expected="it reads what its parent read, and ends",
            found=f"{_AFTER_FORK[ended.status]}: {ended.last_output}".rstrip(": "),
        )
    if ended.status:
        raise Blocked(ended.last_output or f"a process that reads a file ends with {ended.status}")


def use_and_fork(target: dict[str, Any], check_id: str) -> NoReturn:
    """In that process: read a file, have a child read it again, and end with what came of it."""
    from modular_tf.check.filesystem.session import FilesystemSession  # noqa: PLC0415  (one of two)

    fs = FilesystemSession(decode(Target, target)).new_workspace(check_id)
    uri = fs.make_file()
    content = fs.content(uri)
    time.sleep(_SETTLE_S)
    child = os.fork()
    if child == 0:
        _read_again(fs, uri, content)
    deadline = time.monotonic() + _CHILD_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            _end(code if code in {0, *_AFTER_FORK} else _CRASHES)
        time.sleep(_LOOK_EVERY_S)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    _end(_HANGS)


def _read_again(fs: FilesystemWorkspace, uri: str, content: bytes) -> NoReturn:
    """Read as the child, which then ends as programs do: with all destructors."""
    try:
        found = fs.content(uri)
    except Blocked as error:
        sys.stderr.write(str(error))
        _end(_FAILS)
    if found != content:
        _end(_DIFFERS)
    sys.exit(0)


def _end(status: int) -> NoReturn:
    """End at once: how this process ends is another check's."""
    sys.stderr.flush()
    os._exit(status)
