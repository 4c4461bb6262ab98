"""Libraries of the package that a process can only get by `LD_PRELOAD`, at its start."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import modular_tf

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_WATCHED = "libmodular_tf_watched.so"  # see watched/watched.c
_PRELOAD = "LD_PRELOAD"
_SEPARATORS = " :"  # of LD_PRELOAD, which knows no way to quote them
_OURS = "libmodular_tf_"


def preloaded(environment: Mapping[str, str]) -> list[str]:
    """Return the libraries that the processes of an environment preload."""
    listed = environment.get(_PRELOAD, "")
    for mark in _SEPARATORS:
        listed = listed.replace(mark, ":")
    return [path for path in listed.split(":") if path]


def library_path(library: str, folder: str = "native") -> str | None:
    """Return where a library of the package is installed, None where this platform has none.

    It lies in `lib` below the package's `folder`.
    """
    from modular_tf.native import _core  # noqa: PLC0415  (its folder is where CMake installs)

    built = os.path.dirname(os.path.dirname(_core.__file__ or ""))
    roots = (*modular_tf.__path__, built)  # an editable install has two
    paths = (os.path.join(root, folder, "lib", library) for root in roots)
    return next((path for path in paths if os.path.isfile(path)), None)


def preload(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment whose processes report crashes of all threads, and count fork handlers.

    A library that is preloaded already stays so, in front.
    """
    path = library_path(_WATCHED)
    return with_preloaded(environment, (*preloaded(environment), *([path] if path else ())))


def with_preloaded(environment: Mapping[str, str], paths: Sequence[str]) -> dict[str, str]:
    """Return an environment whose processes preload these libraries.

    Unchanged where there are none, or LD_PRELOAD cannot name one of them.
    """
    if not paths or any(mark in path for path in paths for mark in _SEPARATORS):
        return dict(environment)
    return {**environment, _PRELOAD: ":".join(paths)}


def forget_preload() -> None:
    """Remove the package's libraries from the LD_PRELOAD of programs that this process starts.

    The process itself keeps those that it has preloaded.
    """
    kept = [path for path in preloaded(os.environ) if not os.path.basename(path).startswith(_OURS)]
    if kept:
        os.environ[_PRELOAD] = ":".join(kept)
    else:
        os.environ.pop(_PRELOAD, None)
