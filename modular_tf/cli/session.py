"""The service that one command works with."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator

    from modular_tf.service import PluginService


@contextmanager
def session(options: Namespace, *, load: bool = True) -> Iterator[PluginService]:
    """Run the way for one command: discover, and with `load` load and register as well."""
    from modular_tf.service import PluginService  # noqa: PLC0415  (loads the native core)

    with PluginService(
        plugin_paths=tuple(options.plugin),
        plugin_dirs=tuple(options.plugin_dir),
        bundled=options.bundled,
    ) as service:
        service.discover()
        if load:
            service.load()
        yield service
