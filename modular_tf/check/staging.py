"""Which stage a target is tried on."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, cast

from modular_tf.check.outcome import Pass
from modular_tf.filesystem.workarounds import import_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.check.target import Stage, Target

_STAGES: Mapping[tuple[str, bool], tuple[str, str]] = {
    ("library", True): ("modular_tf.check.filesystem.library_stage", "FilesystemLibraryStage"),
    ("filesystem", True): ("modular_tf.check.filesystem.library_stage", "FilesystemLibraryStage"),
    ("filesystem", False): ("modular_tf.check.filesystem.stage", "FilesystemStage"),
    ("device", True): ("modular_tf.check.device.library_stage", "DeviceLibraryStage"),
    ("device", False): ("modular_tf.check.device.stage", "DeviceStage"),
    ("kernel", True): ("modular_tf.check.kernel.library_stage", "KernelLibraryStage"),
    ("kernel", False): ("modular_tf.check.kernel.stage", "KernelStage"),
}
"""Module and class by the target's kind and whether it is the library that is tried."""


def stage_of(target: Target) -> Stage:
    """Load what a target names, in this process; its `close` takes it down.

    Raises:
        Blocked: It cannot be loaded.
        ModularTFError: Likewise.
    """
    module, name = _STAGES[target.kind, target.reached is Pass.LIBRARY]
    return cast("Stage", getattr(import_module(module), name)(target))


def import_stages() -> None:
    """Do once what making a stage would do again, in a process whose forks are to make them.

    A stage whose extra is not installed fails where it is made.
    """
    for module, _ in _STAGES.values():
        with suppress(ImportError):
            import_module(module)
    import_stores()
