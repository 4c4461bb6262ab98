"""Has `tensorboard --logdir s3://…` read by this package's plugins.

TensorBoard finds `SchemeLoader` by an entry point of the group `tensorboard_plugins`. It adds no
dashboard.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from tensorboard.compat import tf  # type: ignore[import-not-found,unused-ignore]
from tensorboard.plugins.base_plugin import TBLoader  # type: ignore[import-not-found,unused-ignore]
from tensorboard.util import tb_logging  # type: ignore[import-not-found,unused-ignore]

from modular_tf.errors import ModularTFError, NotFoundError
from modular_tf.filesystem.uri import scheme_of
from modular_tf.service.default import default_service
from modular_tf.tensorflow.registration import SWITCH, register

if TYPE_CHECKING:
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.service import PluginService

_Method = TypeVar("_Method", bound=Callable[..., Any])

_warnings = tb_logging.get_logger()  # TensorBoard's, which people who start it read
_STUB = "stub"  # the version of what TensorBoard has instead of TensorFlow


class SchemeLoader(TBLoader):  # type: ignore[misc,unused-ignore]
    """Registers the schemes of TensorBoard's log directories before it reads them."""

    def fix_flags(self, flags: Any) -> None:
        """Register the schemes that `--logdir` and `--logdir_spec` name. [TensorBoard's thread]"""
        named = f"{getattr(flags, 'logdir', '') or ''},{getattr(flags, 'logdir_spec', '') or ''}"
        if os.environ.get(SWITCH) != "0":
            register_schemes(schemes_in(named))

    def load(self, _context: Any) -> None:
        """Return no dashboard."""
        return


def schemes_in(directories: str) -> list[str]:
    """Return the schemes of directories as TensorBoard's options list them: `a:s3://x,gs://y`."""
    found = []
    for directory in directories.split(","):
        last = directory.split("://", 1)[0].rpartition(":")[2]
        scheme = scheme_of(f"{last.strip()}://") if "://" in directory else ""
        if scheme and scheme not in found:
            found.append(scheme)
    return found


def register_schemes(schemes: list[str]) -> None:
    """Have TensorBoard read schemes that a plugin serves, by TensorFlow or without it.

    What TensorBoard can read by itself stays as it is. What fails is a warning, and TensorBoard
    says what it cannot read.
    """
    if not schemes:  # then TensorBoard may never need TensorFlow
        return
    for scheme in schemes:
        if _is_readable(scheme):
            continue
        service = default_service()
        if service.owner(scheme) is None:
            names = ", ".join(filter(None, service.schemes()))
            text = "modular_tf: no plugin serves %r; schemes served: %s; %s"
            _warnings.warning(text, scheme, names, service.next_step(scheme))
        elif tf.__version__ == _STUB:
            tf.io.gfile.register_filesystem(scheme, _ServiceFiles(service))
        else:
            try:
                register([scheme], service=service)
            except ModularTFError as error:
                _warnings.warning("modular_tf: %s", error)


def _is_readable(scheme: str) -> bool:
    if tf.__version__ != _STUB:
        return scheme in tf.io.gfile.get_registered_schemes()
    try:
        tf.io.gfile.get_filesystem(f"{scheme}://")
    except (ImportError, ValueError):  # fsspec lacks a client, or does not know the scheme
        return False
    return True


# -- without TensorFlow: TensorBoard has file functions of its own, at the same names --------------


def _in_their_terms(method: _Method) -> _Method:
    """Return a method whose path may be bytes, with TensorBoard's error for nothing there."""

    @wraps(method)
    def call(self: _ServiceFiles, path: str | bytes, *arguments: Any, **options: Any) -> Any:
        try:
            return method(self, os.fsdecode(path), *arguments, **options)
        except NotFoundError as error:
            raise tf.errors.NotFoundError(None, None, str(error)) from error

    return call  # type: ignore[return-value]


class _ServiceFiles:
    """A filesystem of TensorBoard's that reads by a service. [any thread]

    TensorBoard holds no file open: a read continues where the last one ended, as that returned.
    """

    def __init__(self, service: PluginService) -> None:
        self._service = service

    def _filesystem(self, uri: str) -> Filesystem:
        return self._service.filesystem(scheme_of(uri))

    @_in_their_terms
    def exists(self, filename: str) -> bool:
        return self._filesystem(filename).path_exists(filename)

    def join(self, path: str, *paths: str) -> str:
        return "/".join([path.rstrip("/"), *(part.strip("/") for part in paths)])

    @_in_their_terms
    def read(
        self,
        filename: str,
        binary_mode: bool = False,  # noqa: FBT001, FBT002  (TensorBoard's signature)
        size: int | None = None,
        continue_from: int | None = None,
    ) -> tuple[bytes | str, int]:
        """Return what follows a position in a file, by default all of it, and where that ends."""
        at = continue_from or 0
        filesystem = self._filesystem(filename)
        wanted = max(0, filesystem.get_file_size(filename) - at)
        if size is not None:
            wanted = min(size, wanted)
        data = filesystem.read_range(filename, at, wanted)
        return (data if binary_mode else data.decode()), at + len(data)

    @_in_their_terms
    def glob(self, filename: str) -> list[str]:
        return list(self._filesystem(filename).get_matching_paths(filename))

    @_in_their_terms
    def isdir(self, dirname: str) -> bool:
        try:
            return self._filesystem(dirname).is_directory(dirname)
        except NotFoundError:
            return False

    @_in_their_terms
    def listdir(self, dirname: str) -> list[str]:
        return [name.rstrip("/") for name in self._filesystem(dirname).get_children(dirname)]

    @_in_their_terms
    def stat(self, filename: str) -> Any:
        """Return a file's length, as TensorBoard's record."""
        return tf.io.gfile.StatData(self._filesystem(filename).stat(filename).length)
