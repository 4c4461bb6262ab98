"""In the child process: does to a device plugin what the host does to list its devices."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from typing import TYPE_CHECKING, NoReturn

from modular_tf.device.platform import load_device_platform
from modular_tf.errors import ModularTFError
from modular_tf.first_contact.journal import Journal
from modular_tf.loading.loader import map_file
from modular_tf.native.device_calls import announce_calls
from modular_tf.native.parent_death import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.device.platform import DevicePlatform
    from modular_tf.native.library import Library


def run(
    *,
    plugin: str,
    file: str,
    companions: Sequence[str],
    absent: Sequence[str],
    report: int,
    parent: int,
) -> NoReturn:
    """Try a plugin and end the process; what the plugin registered to run then does not run.

    Args:
        plugin: Its name for users.
        file: Its library.
        companions: Libraries that it brings along.
        absent: Functions that it asks for and nobody has.
        report: The descriptor to tell of it on.
        parent: The process that waits for this one, and whose end is this one's.
    """
    die_with_parent(parent)
    _forbid_core_dumps()
    journal = Journal(report)
    try:
        # What the plugin breaks by rule is found again, and told, when the application loads it.
        with suppress(ModularTFError):
            journal.enter("a constructor of the library")
            _try_plugin(map_file(file, companions, absent), plugin, journal)
        journal.finish()
    except Exception as error:  # noqa: BLE001  (none of ours may count as the plugin's)
        journal.fail(f"{type(error).__name__}: {error}")
    os._exit(0)


def _forbid_core_dumps() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    # One byte is too little for a file, and keeps the kernel from piping the dump to a program,
    # which it does at 0.
    limit = 0 if hard == 0 else 1
    resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))


def _try_plugin(library: Library, plugin: str, journal: Journal) -> None:
    announce_calls(journal.enter)
    with load_device_platform(library, plugin_name=plugin) as platform:
        for ordinal in range(platform.device_count()):
            journal.device = ordinal
            with suppress(ModularTFError):  # a device that fails does not hide the others
                _look_at_device(platform, ordinal, journal)
        journal.device = None


def _look_at_device(platform: DevicePlatform, ordinal: int, journal: Journal) -> None:
    platform.device_details(ordinal)
    executor = platform.executor(ordinal)
    journal.enter("device_memory_usage")
    executor.memory_usage()
