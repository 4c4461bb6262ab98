"""Libraries of the package that a process can only get by `LD_PRELOAD`, at its start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

CHECKING_ALLOCATOR = "libmodular_tf_checking_allocator.so"
"""Sees what a plugin does to the heap (`checking_allocator`)."""
SIGNAL_STACKS = "libmodular_tf_signal_stacks.so"
"""Lets threads tell of a crash whose stack has run out (`signal_stacks/signal_stacks.c`)."""
FORK_HANDLERS = "libmodular_tf_fork_handlers.so"
"""Counts what is to be called at each fork (`fork_handlers/fork_handlers.c`)."""

_PRELOAD = "LD_PRELOAD"
_SEPARATORS = " :"  # of LD_PRELOAD, which knows no way to quote them
_OURS = (CHECKING_ALLOCATOR, SIGNAL_STACKS, FORK_HANDLERS)


def preloaded(environment: Mapping[str, str]) -> list[str]:
    """Return the libraries that the processes of an environment preload."""
    listed = environment.get(_PRELOAD, "")
    for mark in _SEPARATORS:
        listed = listed.replace(mark, ":")
    return [path for path in listed.split(":") if path]


def library_path(library: str) -> str | None:
    """Return the path of one of the libraries, None if this platform has none."""
    import modular_tf.native as package  # noqa: PLC0415  (an editable install has two folders)
    from modular_tf.native import _core  # noqa: PLC0415  (its folder is where CMake installs)

    folders = (*package.__path__, os.path.dirname(_core.__file__ or ""))
    paths = (os.path.join(folder, "lib", library) for folder in folders)
    return next((path for path in paths if os.path.isfile(path)), None)


def preload(
    environment: Mapping[str, str], library: str, *, in_front: bool = False
) -> dict[str, str]:
    """Return an environment that also preloads one of the libraries, if it exists.

    Args:
        environment: What they have besides; a library that is preloaded already stays so.
        library: The name of the file.
        in_front: Put it before the others, not behind them.
    """
    path = library_path(library)
    if path is None or any(mark in path for mark in _SEPARATORS):
        return dict(environment)
    others = preloaded(environment)
    listed = [path, *others] if in_front else [*others, path]
    return {**environment, _PRELOAD: ":".join(listed)}


def forget_preload() -> None:
    """Let programs that this process starts have what it would have had without the package.

    The process itself keeps its own.
    """
    kept = [path for path in preloaded(os.environ) if os.path.basename(path) not in _OURS]
    if kept:
        os.environ[_PRELOAD] = ":".join(kept)
    else:
        os.environ.pop(_PRELOAD, None)
