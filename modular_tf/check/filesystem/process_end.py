"""Whether a process that has used a filesystem, and not taken it down, ends as if it had not."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Blocked, Deviation
from modular_tf.check.filesystem.session import FilesystemSession
from modular_tf.check.new_process import leave, run_in_new_process
from modular_tf.check.outcome import Pass
from modular_tf.check.target import Target

if TYPE_CHECKING:
    from modular_tf.check.filesystem.workspace import FilesystemWorkspace

_SECONDS = 40.0


def expect_clean_end(ground: FilesystemWorkspace) -> None:
    """Demand that a process that has used a filesystem ends as if it had not.

    Raises:
        Deviation: It crashes, or does not end.
        Blocked: The filesystem cannot be used.
    """
    target = replace(ground.target, reached=Pass.RAW)
    given = {"target": target.as_dict(), "path": ground.path("X")}
    ended = run_in_new_process(__name__, "use_filesystem", given, seconds=_SECONDS)
    expected = "it exits with status 0"
    if ended is None:
        message = "a process that has not called cleanup does not end"
        found = f"it still ran after {_SECONDS:.0f} s"
        raise Deviation(message, expected=expected, found=found)
    if ended.status:
        message = "a process that has not called cleanup fails at its end"
        raise Deviation(message, expected=expected, found=ended.how)


def use_filesystem(target: dict[str, Any], path: str) -> object:
    """In that process: use the filesystem, and leave it as it is.

    Args:
        target: The fields of a `Target`, as JSON knows them.
        path: Where nothing is.

    Returns:
        What must live until the process ends.
    """
    try:
        session = FilesystemSession(Target.from_dict(target))
    except Blocked as blocked:
        leave(blocked)
    # Whatever it answers: what matters is that clients, threads and caches have come to life.
    for operation in ("path_exists", "new_random_access_file", "get_children"):
        if session.access.offers(operation):
            session.access.call(operation, path)
    return session
