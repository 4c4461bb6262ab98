"""The files that `import tensorflow` opens: those of `tensorflow-plugins`, and of one variable."""

from __future__ import annotations

import os
import sysconfig
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.sources.named_paths import TF_LIBRARY_PATH_VARIABLE
from modular_tf.discovery.sources.tensorflow_plugins import DIRECTORY_NAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.tensorflow.installation import TensorFlowInstallation

_LIBRARY_DIRECTORIES = ("purelib", "platlib")
_NO_LIBRARY_NAME = "its name does not end in .so, or .so and a version"
# In TensorFlow's words, as people search for them.
_NOTHING_THERE = (
    "FileNotFoundError: [Errno 2] The file or folder to load pluggable device libraries from does "
    "not exist."
)
_NAME_ENDS_IMPORT = "IndexError: string index out of range"


class ImportedFile(NamedTuple):
    """A file that `import tensorflow` opens, or would open if something were different.

    Attributes:
        path: The file.
        origin: The directory that it was found in, or the variable that names it.
        ignored: Why it is not opened; "" where it is.
        failure: What the import fails with before it opens the file; "" where it gets that far.
    """

    path: str
    origin: str
    ignored: str = ""
    failure: str = ""


def imported_files(
    tensorflow: TensorFlowInstallation | None, paths: SearchPaths
) -> Iterator[ImportedFile]:
    """Yield what `import tensorflow` opens, one directory after the other.

    TensorFlow's own order of directories, and of the files in one, is undefined.

    Args:
        tensorflow: The installation; None where there is none, which opens nothing.
        paths: What the process searches.
    """
    sites = _sites(tensorflow, paths.site_directories)
    ignored = _why_directories_are_ignored(tensorflow, sites)
    for site in sites:
        yield from _of_place(os.path.join(site, DIRECTORY_NAME), ignored)
    if named := paths.environment.get(TF_LIBRARY_PATH_VARIABLE, ""):
        yield from _of_variable(named, "" if tensorflow else ignored)


def _sites(tensorflow: TensorFlowInstallation | None, sites: Iterable[str]) -> list[str]:
    found = list(sites)
    if tensorflow is not None and tensorflow.scans_every_scheme:
        found += [
            os.path.abspath(sysconfig.get_path(name, scheme))
            for scheme in sysconfig.get_scheme_names()
            for name in _LIBRARY_DIRECTORIES
        ]
    return list(dict.fromkeys(found))


def _why_directories_are_ignored(
    tensorflow: TensorFlowInstallation | None, sites: Iterable[str]
) -> str:
    if tensorflow is None:
        return "no TensorFlow is installed"
    # TensorFlow compares the beginnings of paths, not whole names of directories.
    if any(tensorflow.folder.startswith(site) for site in sites):
        return ""
    return f"TensorFlow lies in no directory of packages, but in {tensorflow.folder}"


def _of_place(place: str, ignored: str) -> Iterator[ImportedFile]:
    """Yield the files of a place where TensorFlow looks; a file is opened whatever its name is."""
    if not os.path.exists(place):
        return
    if not os.path.isdir(place):
        yield ImportedFile(place, place, ignored)
        return
    try:
        names = sorted(os.listdir(place))
    except OSError as error:
        failure = f"{type(error).__name__}: {error}"
        yield ImportedFile(place, place, ignored, failure)
        return
    for name in names:
        path = os.path.join(place, name)
        if ignored or not _is_opened(name):
            yield ImportedFile(path, place, ignored or _NO_LIBRARY_NAME)
        else:
            failure = _NAME_ENDS_IMPORT if name.endswith(".so.") else ""
            yield ImportedFile(path, place, failure=failure)


def _of_variable(place: str, ignored: str) -> Iterator[ImportedFile]:
    if not os.path.exists(place) and not ignored:
        yield ImportedFile(place, TF_LIBRARY_PATH_VARIABLE, failure=f"{_NOTHING_THERE}: {place!r}")
    for file in _of_place(place, ignored):
        yield file._replace(origin=TF_LIBRARY_PATH_VARIABLE)


def _is_opened(name: str) -> bool:
    """Return whether TensorFlow takes a name for a library's; at `x.so.` it fails."""
    if name.endswith((".so", ".so.")):
        return True
    _, separator, version = name.rpartition(".so.")
    return bool(separator) and version[:1].isdecimal()
