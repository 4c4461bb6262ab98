"""A process that forks after it has used a filesystem."""

from __future__ import annotations

import os
import signal
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.filesystem.session import FilesystemSession
from modular_tf.check.filesystem.workspace import PREPARED, FilesystemWorkspace
from modular_tf.check.new_process import leave, run_in_new_process
from modular_tf.check.target import Target
from modular_tf.errors import ModularTFError

if TYPE_CHECKING:
    from typing import NoReturn

_CHILD_S = 8.0
_SECONDS = 40.0
_LOOK_EVERY_S = 0.02
_SETTLE_S = 0.5  # until threads that the plugin has started wait for work
_STATUSES = {
    51: "the child does not return",
    52: "the child reads something else",
    53: "the child cannot read",
    54: "the child does not end with status 0",
}
_HANGS, _DIFFERS, _FAILS, _CRASHES = _STATUSES


def expect_use_after_fork(ground: FilesystemWorkspace, check_id: str) -> None:
    """Demand that a forked child can read a file that its parent could, and ends.

    Args:
        ground: Of the check.
        check_id: Its id.

    Raises:
        Deviation: It cannot, or does not come to an end.
        Blocked: Not even the parent can.
    """
    given = {"target": _target_within(ground).as_dict(), "check_id": check_id}
    ended = run_in_new_process(__name__, "use_and_fork", given, seconds=_SECONDS)
    if ended is None:
        raise Blocked("a process that reads a file does not end")
    if ended.status in _STATUSES:
        raise Deviation(
            "a forked child cannot use the filesystem that it inherits",
            expected="it reads what its parent read, and ends",
            found=f"{_STATUSES[ended.status]}: {ended.said}".rstrip(": "),
        )
    if ended.status:
        raise Blocked(ended.said or f"a process that reads a file ends with {ended.status}")


def _target_within(ground: FilesystemWorkspace) -> Target:
    """Return a target whose roots lie in the check's own, and are removed with it."""
    if ground.target.options.get(PREPARED):
        return ground.target
    return replace(ground.target, root=ground.root)


def use_and_fork(target: dict[str, Any], check_id: str) -> NoReturn:
    """In that process: read a file, have a child read it again, and end with what came of it.

    Args:
        target: The fields of a `Target`, as JSON knows them.
        check_id: The check's id.
    """
    try:
        session = FilesystemSession(Target.from_dict(target))
        ground = session.new_workspace(check_id)
        uri = ground.make_file()
        content = ground.content(uri)
    except (Blocked, Unsupported, ModularTFError) as error:
        leave(error)
    time.sleep(_SETTLE_S)
    child = os.fork()
    if child == 0:
        _read_again(ground, uri, content)
    _end(_status_of(child))


def _read_again(ground: FilesystemWorkspace, uri: str, content: bytes) -> NoReturn:
    """Read as the child, which then ends as programs do: with all destructors."""
    try:
        found = ground.content(uri)
    except Blocked as error:
        sys.stderr.write(str(error))
        _end(_FAILS)
    if found != content:
        _end(_DIFFERS)
    sys.exit(0)


def _status_of(child: int) -> int:
    """Wait for the child, and return with what this process is to end."""
    deadline = time.monotonic() + _CHILD_S
    while time.monotonic() < deadline:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code in {0, *_STATUSES} else _CRASHES
        time.sleep(_LOOK_EVERY_S)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return _HANGS


def _end(status: int) -> NoReturn:
    """End at once: how this process ends is another check's."""
    sys.stderr.flush()
    os._exit(status)
