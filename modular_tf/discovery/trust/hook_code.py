"""The code of a hook that an installed package brings, by its bytes; nothing of it is imported."""

from __future__ import annotations

import os
from hashlib import sha256
from importlib.machinery import all_suffixes
from importlib.util import find_spec

from modular_tf.discovery.trust.lock_file import LockedFile
from modular_tf.rules.shortage import raise_shortage

__all__ = ["code_of_hook"]

_COMPILED = "__pycache__"  # which Python writes anew


def code_of_hook(value: str) -> LockedFile:
    """Return the code of the top-level package, or module, that an entry point names.

    That is the hash of a list of all its modules, with the hash of each.

    Args:
        value: The value of the entry point: `package.module:object`.

    Raises:
        OSError: There is no such package, or a file of it cannot be read.
    """
    top = value.partition(":")[0].partition(".")[0].strip()
    try:
        spec = find_spec(top)
    except Exception as error:  # finders of editable installs may raise anything
        raise_shortage(error)
        raise OSError(f"package {top!r} cannot be found: {error!r}") from error
    if spec is None:
        raise OSError(f"package {top!r} is not installed")
    if spec.submodule_search_locations is None:
        files = {os.path.basename(spec.origin or ""): spec.origin or ""}
    else:
        files = dict(
            found for root in spec.submodule_search_locations for found in _modules_below(root)
        )
    digest, size = sha256(), 0
    for name in sorted(files):
        with open(files[name], "rb") as stream:
            code = stream.read()
        size += len(code)
        digest.update(f"{sha256(code).hexdigest()} {name}\n".encode("utf-8", "surrogateescape"))
    return LockedFile(top, digest.hexdigest(), size)


def _modules_below(root: str) -> list[tuple[str, str]]:
    """Return the modules in a directory and below it: the path within it, and the path."""
    suffixes = tuple(all_suffixes())
    found = []
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name != _COMPILED]
        paths = (os.path.join(folder, name) for name in names if name.endswith(suffixes))
        found += [(os.path.relpath(path, root), path) for path in paths]
    return found
