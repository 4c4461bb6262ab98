"""What works here, and what TensorFlow will do with the plugins that are installed.

TensorFlow is found on the disk and not imported, and no code of a plugin runs in this process.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.discovery.linking.link_scope import ProcessScope
from modular_tf.discovery.privileges import linker_variable
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.isolation.rights import rights_here
from modular_tf.tensorflow.import_prediction import FileRow, predict_import
from modular_tf.tensorflow.installation import TensorFlowInstallation, find_tensorflow, releases
from modular_tf.tensorflow.plugin_prediction import PluginRow, predict_plugins
from modular_tf.tensorflow.scheme_report import AvailableScheme, report_schemes
from modular_tf.tensorflow.store_report import StoreRow, report_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.service.service import PluginService

__all__ = [
    "AvailableScheme",
    "Diagnosis",
    "FileRow",
    "PluginRow",
    "StoreRow",
    "diagnose",
    "missing_in_tensorflow",
]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """All of it.

    Attributes:
        tensorflow: The TensorFlow that would be imported, None for none.
        files: The files that `import tensorflow` opens.
        plugins: The plugins that are installed.
        stores: What they read from the environment.
        schemes: The schemes that work here, and those that a user may miss.
        limits: What worker processes are restricted to, and why not; "" where they are.
    """

    tensorflow: TensorFlowInstallation | None
    files: tuple[FileRow, ...]
    plugins: tuple[PluginRow, ...]
    stores: tuple[StoreRow, ...]
    schemes: tuple[AvailableScheme, ...]
    limits: Mapping[str, str]

    @property
    def is_well(self) -> bool:
        """Whether nothing is known to fail."""
        rows: tuple[FileRow | PluginRow | StoreRow | AvailableScheme, ...]
        rows = (*self.files, *self.plugins, *self.stores, *self.schemes)
        return not any(row.is_bad for row in rows)


def diagnose(service: PluginService, paths: SearchPaths | None = None) -> Diagnosis:
    """Return what works here and what does not.

    Args:
        service: It has loaded its plugins: those whose bytes were new have been tried in a child.
        paths: Where TensorFlow and its plugins are looked for; by default as this process does.

    Raises:
        ShortageError: This process has too few descriptors or too little memory now.
    """
    where = SearchPaths.of_process() if paths is None else paths
    tensorflow = find_tensorflow()
    records, config = service.plugins(), service.config
    library_path = linker_variable("LD_LIBRARY_PATH", where.environment)
    preload = linker_variable("LD_PRELOAD", where.environment)
    with closing(ProcessScope(library_path=library_path, preload=preload)) as process:
        return Diagnosis(
            tensorflow,
            predict_import(tensorflow, where, process, config),
            predict_plugins(records, tensorflow, process, config),
            report_stores(records),
            report_schemes(service, releases().schemes if tensorflow else ()),
            rights_here(),
        )


def missing_in_tensorflow(diagnosis: Diagnosis) -> tuple[str, ...]:
    """Return the schemes that are served here and that TensorFlow lacks."""
    served = {row.scheme for row in diagnosis.schemes if row.plugin}
    return tuple(sorted(served.difference(releases().schemes)))
