"""Source 6: the directories `tensorflow-plugins`, where TensorFlow looks for device plugins.

Its rules, without its faults: the order is defined, each file is opened once, and a broken file
is a problem of its own instead of the end of `import tensorflow`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source

if TYPE_CHECKING:
    from modular_tf.discovery.sources.search_log import SearchLog
    from modular_tf.discovery.sources.search_paths import SearchPaths

__all__ = ["DIRECTORY_NAME", "search_tensorflow_plugins"]

DIRECTORY_NAME = "tensorflow-plugins"


def search_tensorflow_plugins(paths: SearchPaths, log: SearchLog) -> None:
    """Search `tensorflow-plugins` in every site-packages directory."""
    for site in paths.site_directories:
        path = os.path.join(site, DIRECTORY_NAME)
        log.look_at(path, Source.TENSORFLOW_PLUGINS, path)
