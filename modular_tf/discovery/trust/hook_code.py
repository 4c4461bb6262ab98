"""The code of a hook that an installed package brings, by its bytes; nothing of it is imported."""

from __future__ import annotations

import os
from hashlib import sha256
from importlib.machinery import all_suffixes
from importlib.util import find_spec
from operator import itemgetter

from modular_tf.discovery.file_identity import sha256_of
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
        files = [(os.path.basename(spec.origin or ""), spec.origin or "")]
    else:
        # A namespace package has several folders; of two modules with one name the first counts.
        roots = filter(os.path.isdir, spec.submodule_search_locations)  # others are for finders
        files = sorted((it for root in roots for it in _modules_below(root)), key=itemgetter(0))
    digest, size = sha256(), 0
    for name, path in files:
        with open(path, "rb") as stream:
            size += os.fstat(stream.fileno()).st_size
            code = sha256_of(stream.fileno())
        digest.update(f"{code} {name}\n".encode("utf-8", "surrogateescape"))
    return LockedFile(top, digest.hexdigest(), size)


def _modules_below(root: str) -> list[tuple[str, str]]:
    """Return the modules in a directory and below it: the path within it, and the path.

    Modules are imported from behind links to directories too; each directory is looked at once.

    Raises:
        OSError: A directory cannot be listed.
    """
    suffixes = tuple(all_suffixes())
    found: list[tuple[str, str]] = []
    seen: set[tuple[int, int]] = set()
    for folder, folders, names in os.walk(root, onerror=_raise, followlinks=True):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in seen:
            folders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        folders[:] = sorted(name for name in folders if name != _COMPILED)
        paths = (os.path.join(folder, name) for name in names if name.endswith(suffixes))
        found += [(os.path.relpath(path, root), path) for path in paths if os.path.isfile(path)]
    return found


def _raise(error: OSError) -> None:
    raise error
