"""Loading the library of a plugin in the application: mapped here, or in a worker process."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from modular_tf.device.factory import HOST_CPU_PRIORITY, PLUGIN_PRIORITY
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.first_contact.finding import Finding, Offer, noted
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.opened_libraries import unlocked_library
from modular_tf.native.library import mapped_objects
from modular_tf.opening import DeviceSettings, OpenedPlugin
from modular_tf.processes.child import output_to_standard_error

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.native.library import Library, MappedObject
    from modular_tf.rules import Violation
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin

__all__ = ["finding_of", "load_library"]

_HOST_DEVICE = "libhost_device.so"


def load_library(
    plugin: Plugin, config: Config, trust: TrustPolicy, why_taken: Callable[[str], Violation | None]
) -> OpenedPlugin:
    """Map a library and run its init functions; what goes wrong in it is in its notes.

    `trust` judges what is mapped beside the plugin's own files. `why_taken` is asked before a
    scheme is initialised: it returns why the plugin cannot have that, None where it can. Raises
    ShortageError where this process has too little of something to load it now.
    """
    opened = OpenedPlugin(
        plugin.task,
        bundled=plugin.is_bundled,
        sealed=plugin.sealed or config.trust.frozen,
        devices=_device_settings(plugin, config),
        why_taken=why_taken,
    )
    try:
        with nullcontext() if plugin.is_bundled else output_to_standard_error():
            if config.is_isolated(plugin.name) and plugin.is_isolable:
                _open_in_worker(opened, plugin, config)
            else:
                _open_here(opened, plugin, trust)
    except BaseException:  # a shortage: nobody gets what was opened
        opened.close()
        raise
    return opened


def _device_settings(plugin: Plugin, config: Config) -> DeviceSettings:
    is_host_device = plugin.is_bundled and plugin.path.endswith(f"/{_HOST_DEVICE}")
    return DeviceSettings(
        priority=HOST_CPU_PRIORITY if is_host_device else PLUGIN_PRIORITY,
        memory=config.memory_of,
        copy_streams=config.copy_streams,
        survives_fork=is_host_device,
        is_host_memory=is_host_device,
    )


def _open_here(opened: OpenedPlugin, plugin: Plugin, trust: TrustPolicy) -> None:
    """Open a plugin in this process; where plugins are frozen, only with what is locked."""
    library = opened.map()
    if library is None:
        return
    is_judged = trust.frozen and bool(plugin.checked)
    if not (is_judged and _is_refused(opened, library, plugin, trust)):
        before = mapped_objects() if is_judged else []
        opened.initialise(library)
        if is_judged:
            _is_refused(opened, library, plugin, trust, before)
    bound_files.of(library).by_name.close_unopened()


def _is_refused(
    opened: OpenedPlugin,
    library: Library,
    plugin: Plugin,
    trust: TrustPolicy,
    before_init: Sequence[MappedObject] | None = None,
) -> bool:
    """Close a plugin if a library was opened with it that is not locked; return whether one was."""
    refusal = unlocked_library(library, plugin.checked, trust, before_init)
    if refusal is not None:
        opened.close()
        opened.fail("load", refusal.error(PluginError, plugin=plugin.path))
    return refusal is not None


def _open_in_worker(opened: OpenedPlugin, plugin: Plugin, config: Config) -> None:
    from modular_tf.service.isolated_plugin import load_in_worker  # noqa: PLC0415  (few are)

    try:
        loaded = load_in_worker(plugin, config)
    except ModularTFError as error:
        opened.fail("load", error)
        return
    opened.note("init", loaded.notes)
    for tables in loaded.tables:
        opened.open_scheme(tables, guarded=loaded.guarded)
    if not opened.filesystems:
        loaded.worker.leave()


def finding_of(opened: OpenedPlugin) -> Finding:
    """Return what trying a plugin would have found."""
    notes = [noted(note) for note in opened.notes if note.stage in {"load", "init"}]
    notes.sort(key=lambda note: not note.is_error)
    return Finding(None, Offer.of(opened), tuple(notes))
