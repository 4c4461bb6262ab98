"""Loading the library of a plugin in the application: mapped here, or in a worker process."""

from __future__ import annotations

import os
from contextlib import nullcontext
from types import MappingProxyType
from typing import TYPE_CHECKING

from modular_tf.device.factory import HOST_CPU_PRIORITY, PLUGIN_PRIORITY
from modular_tf.errors import ModularTFError, PluginError
from modular_tf.first_contact.finding import Finding, Offer, noted
from modular_tf.loading.bound_files import bound_files
from modular_tf.loading.filesystem_tables import WorkerPlace, tables_in_worker
from modular_tf.loading.opened_libraries import unlocked_library
from modular_tf.native.library import mapped_objects
from modular_tf.opening import DeviceSettings, OpenedPlugin
from modular_tf.processes.child import output_to_standard_error
from modular_tf.processes.interpreter import child_environment

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.isolation.job import WorkerOffer
    from modular_tf.isolation.worker import Worker
    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.native.library import Library, MappedObject
    from modular_tf.rules import Violation
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin

__all__ = ["finding_of", "load_in_worker", "load_library"]

_HOST_DEVICE = "libhost_device.so"
_TIME_TO_CLEAN_UP_S = 5.0


def load_library(
    plugin: Plugin,
    config: Config,
    trust: TrustPolicy,
    conflict_of: Callable[[str], Violation | None],
) -> OpenedPlugin:
    """Map a library and run its init functions; what goes wrong in it is in its notes.

    `trust` judges what is mapped beside the plugin's own files. `conflict_of` is asked before a
    scheme is initialised: it returns why the plugin cannot have that, None where it can. Raises
    ShortageError where this process has too little of something to load it now.
    """
    opened = OpenedPlugin(
        plugin.task,
        bundled=plugin.is_bundled,
        sealed=plugin.sealed or config.trust.frozen,
        devices=_device_settings(plugin, config),
        conflict_of=conflict_of,
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
    try:
        worker, tables, offer = load_in_worker(plugin, config)
    except ModularTFError as error:
        opened.fail("load", error)
        return
    opened.note("init", offer.finding.notes)
    for of_scheme in tables:
        opened.open_scheme(of_scheme, guarded=offer.guarded)
    if not opened.filesystems:
        worker.leave()


def load_in_worker(
    plugin: Plugin,
    config: Config,
    *,
    instance: str = "",
    environment: Mapping[str, str | None] = MappingProxyType({}),
) -> tuple[Worker, list[FilesystemTables], WorkerOffer]:
    """Start a worker that loads a plugin, or serves an instance of it; "" is the plugin itself.

    `environment` has variables that the worker gets besides this process's, or instead of them;
    None for one that it does not get. Returns the worker, the tables of its schemes, and all that
    it offers. Raises UnavailableError if the worker cannot be started, or ended (LD-144).
    """
    from modular_tf.isolation.job import Job  # noqa: PLC0415  (few plugins are isolated)
    from modular_tf.isolation.worker import Worker  # noqa: PLC0415  (likewise)

    overlaid = {**os.environ, **environment}
    variables = child_environment({n: value for n, value in overlaid.items() if value is not None})
    tried = plugin.finding
    worker = Worker(
        Job(
            plugin.task,
            plugin.is_bundled,
            variables,
            instance,
            None if tried is None or tried.offer is None else tried.offer.schemes,
            config.directories_of(plugin.name),
        ),
        call_timeout_s=config.call_timeout_s,
        start_timeout_s=config.first_contact_timeout_s,
        close_timeout_s=config.close_timeout_s or _TIME_TO_CLEAN_UP_S,
        most_faults=config.most_worker_faults,
    )
    offer = worker.load()
    offered = zip(offer.schemes, offer.tables, offer.stores, strict=True)
    tables = [
        tables_in_worker(scheme, slots, WorkerPlace(worker, index, store))
        for index, (scheme, slots, store) in enumerate(offered)
    ]
    return worker, tables, offer


def finding_of(opened: OpenedPlugin) -> Finding:
    """Return what trying a plugin would have found."""
    notes = [noted(note) for note in opened.notes if note.stage in {"load", "init"}]
    notes.sort(key=lambda note: not note.is_error)
    return Finding(None, Offer.of(opened), tuple(notes))
