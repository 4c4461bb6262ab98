"""Lets `tensorboard --logdir s3://…` read by this package's plugins.

TensorBoard finds `SchemeLoader` by an entry point of the group `tensorboard_plugins`. It adds no
dashboard.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tensorboard.compat import tf  # type: ignore[import-not-found,unused-ignore]
from tensorboard.plugins.base_plugin import TBLoader  # type: ignore[import-not-found,unused-ignore]
from tensorboard.util import tb_logging  # type: ignore[import-not-found,unused-ignore]

from modular_tf.errors import ModularTFError
from modular_tf.filesystem.scheme import scheme_of
from modular_tf.service.default import default_service
from modular_tf.tensorflow.registration import SWITCH, register

if TYPE_CHECKING:
    from collections.abc import Callable

    from modular_tf.service.service import PluginService

    # Whether TensorBoard can read a scheme, and how it learns to.
    _Ways = tuple[Callable[[str], bool], Callable[[str, PluginService], None]]

_warnings = tb_logging.get_logger()  # TensorBoard's, which people who start it read
_STUB = "stub"  # the version of what TensorBoard has in the place of TensorFlow


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
    """Let TensorBoard read schemes that a plugin serves, by TensorFlow or without it.

    What TensorBoard can read by itself stays as it is. What fails is a warning, and TensorBoard
    says what it cannot read.
    """
    if not schemes:  # then TensorBoard may never need TensorFlow
        return
    can_read, serve = _without_tensorflow() if tf.__version__ == _STUB else _by_tensorflow()
    for scheme in schemes:
        if can_read(scheme):
            continue
        service = default_service()
        if service.owner(scheme) is not None:
            serve(scheme, service)
        else:
            names = ", ".join(filter(None, service.schemes()))
            said = "modular_tf: no plugin serves %r; schemes served: %s; %s"
            _warnings.warning(said, scheme, names, service.next_step(scheme))


def _by_tensorflow() -> _Ways:
    def can_read(scheme: str) -> bool:
        return scheme in tf.io.gfile.get_registered_schemes()

    def serve(scheme: str, service: PluginService) -> None:
        try:
            register([scheme], service=service)
        except ModularTFError as error:
            _warnings.warning("modular_tf: %s", error)

    return can_read, serve


def _without_tensorflow() -> _Ways:
    # Late: with TensorFlow this part of TensorBoard is not imported.
    from modular_tf.tensorflow import tensorboard_files  # noqa: PLC0415

    return tensorboard_files.can_read, tensorboard_files.serve
