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

import os
import sys
from _thread import get_ident

TYPE_CHECKING = False  # as in typing, whose import takes long: an interrupt there is a traceback

if TYPE_CHECKING:
    from modular_tf import config, dlpack, errors, fsspec, gfile
    from modular_tf.abi.data_types import DataType
    from modular_tf.abi.status_codes import Code
    from modular_tf.device.details import DeviceDetails
    from modular_tf.device.device import Device, DeviceArray
    from modular_tf.device.factory import DeviceFactory
    from modular_tf.device.memory.allocator_stats import AllocatorStats, MemoryUsage
    from modular_tf.device.memory.device_memory import DeviceMemory, HostMemory, UnifiedMemory
    from modular_tf.device.memory.memory_settings import MemorySettings
    from modular_tf.device.registry import PhysicalDevice, RegisteredPlatform
    from modular_tf.device.streams.event import Event, EventStatus
    from modular_tf.device.streams.stream import Stream
    from modular_tf.device.streams.timer import Timer
    from modular_tf.discovery.candidate import Candidate, Source, Twin
    from modular_tf.discovery.probe import Probe
    from modular_tf.discovery.sources.search_log import SearchedPlace
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.errors import ModularTFError
    from modular_tf.filesystem.configuration import Option, Transaction
    from modular_tf.filesystem.files import (
        DeletedCounts,
        FileStatistics,
        RandomAccessFile,
        ReadOnlyMemoryRegion,
        WritableFile,
    )
    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.filesystem.location import IncompleteListingWarning
    from modular_tf.headers import include_directory
    from modular_tf.isolation.worker import WorkerRecord
    from modular_tf.kernel.op import Op
    from modular_tf.kernel.op_definition import ArgDefinition, AttrDefinition, OpDefinition
    from modular_tf.kernel.registration import KernelRegistration
    from modular_tf.kernel.selection import KernelCandidate
    from modular_tf.kernel.variable import Variable
    from modular_tf.rules import Problem, Reason, Rule, Severity, Violation
    from modular_tf.service.configuration import Config
    from modular_tf.service.default import (
        default_service,
        load_pluggable_device_library,
        register_filesystem_plugin,
    )
    from modular_tf.service.log_output import configure_logging
    from modular_tf.service.reload.watching import Watch
    from modular_tf.service.report import (
        ChangeKind,
        Decision,
        HookFunction,
        PluginChange,
        PluginRecord,
        Report,
        State,
    )
    from modular_tf.service.service import PluginService
    from modular_tf.service.statistics import OperationStatistics, ServiceStatistics, trace
    from modular_tf.service.why.answer import Explanation, Fact

__version__ = "0.1.0"

_ORIGINS = {
    "AllocatorStats": "modular_tf.device.memory.allocator_stats",
    "ArgDefinition": "modular_tf.kernel.op_definition",
    "AttrDefinition": "modular_tf.kernel.op_definition",
    "Candidate": "modular_tf.discovery.candidate",
    "ChangeKind": "modular_tf.service.report",
    "Code": "modular_tf.abi.status_codes",
    "Config": "modular_tf.service.configuration",
    "DataType": "modular_tf.abi.data_types",
    "Decision": "modular_tf.service.report",
    "DeletedCounts": "modular_tf.filesystem.files",
    "Device": "modular_tf.device.device",
    "DeviceArray": "modular_tf.device.device",
    "DeviceDetails": "modular_tf.device.details",
    "DeviceFactory": "modular_tf.device.factory",
    "DeviceMemory": "modular_tf.device.memory.device_memory",
    "Event": "modular_tf.device.streams.event",
    "EventStatus": "modular_tf.device.streams.event",
    "Explanation": "modular_tf.service.why.answer",
    "Fact": "modular_tf.service.why.answer",
    "FileStatistics": "modular_tf.filesystem.files",
    "Filesystem": "modular_tf.filesystem.filesystem",
    "HookFunction": "modular_tf.service.report",
    "HostMemory": "modular_tf.device.memory.device_memory",
    "IncompleteListingWarning": "modular_tf.filesystem.location",
    "KernelCandidate": "modular_tf.kernel.selection",
    "KernelRegistration": "modular_tf.kernel.registration",
    "MemorySettings": "modular_tf.device.memory.memory_settings",
    "MemoryUsage": "modular_tf.device.memory.allocator_stats",
    "ModularTFError": "modular_tf.errors",
    "Op": "modular_tf.kernel.op",
    "OpDefinition": "modular_tf.kernel.op_definition",
    "OperationStatistics": "modular_tf.service.statistics",
    "Option": "modular_tf.filesystem.configuration",
    "PhysicalDevice": "modular_tf.device.registry",
    "PluginChange": "modular_tf.service.report",
    "PluginRecord": "modular_tf.service.report",
    "PluginService": "modular_tf.service.service",
    "Probe": "modular_tf.discovery.probe",
    "Problem": "modular_tf.rules",
    "RandomAccessFile": "modular_tf.filesystem.files",
    "ReadOnlyMemoryRegion": "modular_tf.filesystem.files",
    "Reason": "modular_tf.rules",
    "RegisteredPlatform": "modular_tf.device.registry",
    "Report": "modular_tf.service.report",
    "Rule": "modular_tf.rules",
    "SearchedPlace": "modular_tf.discovery.sources.search_log",
    "ServiceStatistics": "modular_tf.service.statistics",
    "Severity": "modular_tf.rules",
    "Source": "modular_tf.discovery.candidate",
    "State": "modular_tf.service.report",
    "Stream": "modular_tf.device.streams.stream",
    "Timer": "modular_tf.device.streams.timer",
    "Transaction": "modular_tf.filesystem.configuration",
    "TrustPolicy": "modular_tf.discovery.trust.policy",
    "Twin": "modular_tf.discovery.candidate",
    "UnifiedMemory": "modular_tf.device.memory.device_memory",
    "Variable": "modular_tf.kernel.variable",
    "Violation": "modular_tf.rules",
    "Watch": "modular_tf.service.reload.watching",
    "WorkerRecord": "modular_tf.isolation.worker",
    "WritableFile": "modular_tf.filesystem.files",
    "configure_logging": "modular_tf.service.log_output",
    "default_service": "modular_tf.service.default",
    "include_directory": "modular_tf.headers",
    "load_pluggable_device_library": "modular_tf.service.default",
    "register_filesystem_plugin": "modular_tf.service.default",
    "trace": "modular_tf.service.statistics",
}
_MODULES = ("config", "dlpack", "errors", "fsspec", "gfile")

__all__ = [
    "AllocatorStats",
    "ArgDefinition",
    "AttrDefinition",
    "Candidate",
    "ChangeKind",
    "Code",
    "Config",
    "DataType",
    "Decision",
    "DeletedCounts",
    "Device",
    "DeviceArray",
    "DeviceDetails",
    "DeviceFactory",
    "DeviceMemory",
    "Event",
    "EventStatus",
    "Explanation",
    "Fact",
    "FileStatistics",
    "Filesystem",
    "HookFunction",
    "HostMemory",
    "IncompleteListingWarning",
    "KernelCandidate",
    "KernelRegistration",
    "MemorySettings",
    "MemoryUsage",
    "ModularTFError",
    "Op",
    "OpDefinition",
    "OperationStatistics",
    "Option",
    "PhysicalDevice",
    "PluginChange",
    "PluginRecord",
    "PluginService",
    "Probe",
    "Problem",
    "RandomAccessFile",
    "ReadOnlyMemoryRegion",
    "Reason",
    "RegisteredPlatform",
    "Report",
    "Rule",
    "SearchedPlace",
    "ServiceStatistics",
    "Severity",
    "Source",
    "State",
    "Stream",
    "Timer",
    "Transaction",
    "TrustPolicy",
    "Twin",
    "UnifiedMemory",
    "Variable",
    "Violation",
    "Watch",
    "WorkerRecord",
    "WritableFile",
    "__version__",
    "config",
    "configure_logging",
    "default_service",
    "dlpack",
    "errors",
    "fsspec",
    "gfile",
    "include_directory",
    "load_pluggable_device_library",
    "register_filesystem_plugin",
    "trace",
]


if not TYPE_CHECKING:  # it would say to type checkers that there are all names

    def __getattr__(name: str) -> object:
        from importlib import import_module  # noqa: PLC0415  (see TYPE_CHECKING)

        if name in _MODULES:
            return import_module(f"modular_tf.{name}")
        if name in _ORIGINS:
            value = getattr(import_module(_ORIGINS[name]), name)
            globals()[name] = value
            return value
        raise AttributeError(f"module 'modular_tf' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def _forget_imports_of_lost_threads() -> None:
    """Let a forked child import what another thread was importing when the process forked.

    Python locks a module while a thread imports it, and keeps the lock in the child, which has no
    such thread: there each import of the module waits for ever. Names are imported at first use, so
    a first `load` in one thread and a fork in another one meet. Python has no public way to free
    the lock; where one has other names, the child waits as without this function.
    """
    bootstrap = sys.modules["_frozen_importlib"]
    locks = getattr(bootstrap, "_module_locks", {})
    for name, reference in list(locks.items()):
        owner = getattr(reference(), "owner", None)
        if owner is None or owner == get_ident():
            continue
        locks.pop(name)
        if getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False):
            del sys.modules[name]


os.register_at_fork(after_in_child=_forget_imports_of_lost_threads)
