"""A host for TensorFlow's filesystem and device plugins, without TensorFlow.

```python
import modular_tf as mtf

with mtf.PluginService() as service:
    service.load()
    fs = service.filesystem("ram")
```

Importing this module loads no library and reads no file; names are resolved at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from modular_tf import config, errors, fsspec, gfile
    from modular_tf.codes import Code
    from modular_tf.configuration import Config
    from modular_tf.device.device import Device
    from modular_tf.device.factory import DeviceFactory
    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.statistics import FileStatistics
    from modular_tf.headers import include_directory
    from modular_tf.log_output import configure_logging
    from modular_tf.plugin_change import PluginChange
    from modular_tf.plugin_watch import Watch
    from modular_tf.report import PluginRecord, Report, State
    from modular_tf.service import PluginService, default_service
    from modular_tf.tensorflow_habits import (
        load_pluggable_device_library,
        register_filesystem_plugin,
    )

__version__ = "0.1.0"

_ORIGINS = {
    "Code": "modular_tf.codes",
    "Config": "modular_tf.configuration",
    "Device": "modular_tf.device.device",
    "DeviceFactory": "modular_tf.device.factory",
    "FileStatistics": "modular_tf.filesystem.statistics",
    "Filesystem": "modular_tf.filesystem.filesystem",
    "ModularTFError": "modular_tf.errors",
    "PluginChange": "modular_tf.plugin_change",
    "PluginRecord": "modular_tf.report",
    "PluginService": "modular_tf.service",
    "Report": "modular_tf.report",
    "State": "modular_tf.report",
    "Watch": "modular_tf.plugin_watch",
    "configure_logging": "modular_tf.log_output",
    "default_service": "modular_tf.service",
    "include_directory": "modular_tf.headers",
    "load_pluggable_device_library": "modular_tf.tensorflow_habits",
    "register_filesystem_plugin": "modular_tf.tensorflow_habits",
}
_MODULES = ("config", "errors", "fsspec", "gfile")

__all__ = [
    "Code",
    "Config",
    "Device",
    "DeviceFactory",
    "FileStatistics",
    "Filesystem",
    "ModularTFError",
    "PluginChange",
    "PluginRecord",
    "PluginService",
    "Report",
    "State",
    "Watch",
    "__version__",
    "config",
    "configure_logging",
    "default_service",
    "errors",
    "fsspec",
    "gfile",
    "include_directory",
    "load_pluggable_device_library",
    "register_filesystem_plugin",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"modular_tf.{name}")
    if name in _ORIGINS:
        value = getattr(import_module(_ORIGINS[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'modular_tf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
