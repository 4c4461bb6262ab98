"""`tf.io.gfile` without TensorFlow: same names, arguments and results.

The functions of this module work on the default service; `using(service)` gives the same ones on
another::

    from modular_tf import gfile

    with gfile.GFile("ram://a/b", "w") as file:
        file.write("text")
    gfile.using(service).exists("zz://a/b")

They also work in exit handlers (`atexit`). Those that were registered before this package was first
used run when the default service is closed; what they open is on a new one, and ends with the
interpreter. Daemon threads get a `ClosedError` then.

What TensorFlow 2.21 answers to each of some 1900 calls is recorded beside the tests
(`tests/gfile/recorded_tf_2_21.json`), and where we answer otherwise on purpose, a second file
there says why (`deliberate_differences.toml`).
"""

from __future__ import annotations

from modular_tf.gfile.file import GFile
from modular_tf.gfile.functions import GfileFunctions, ServesFilesystems

__all__ = [
    "GFile",
    "GfileFunctions",
    "copy",
    "exists",
    "get_registered_schemes",
    "glob",
    "isdir",
    "join",
    "listdir",
    "makedirs",
    "mkdir",
    "remove",
    "rename",
    "rmtree",
    "stat",
    "using",
    "walk",
]


def using(service: ServesFilesystems) -> GfileFunctions:
    """Return the functions of this module, and `GFile`, on a service of the caller's choice."""
    return GfileFunctions(service)


_on_default_service = GfileFunctions()

copy = _on_default_service.copy
exists = _on_default_service.exists
get_registered_schemes = _on_default_service.get_registered_schemes
glob = _on_default_service.glob
isdir = _on_default_service.isdir
join = _on_default_service.join
listdir = _on_default_service.listdir
makedirs = _on_default_service.makedirs
mkdir = _on_default_service.mkdir
remove = _on_default_service.remove
rename = _on_default_service.rename
rmtree = _on_default_service.rmtree
stat = _on_default_service.stat
walk = _on_default_service.walk
