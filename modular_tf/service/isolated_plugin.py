"""Loading a filesystem plugin in a worker process."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.isolation.job import Job
from modular_tf.isolation.worker import Worker
from modular_tf.loading.filesystem_tables import WorkerPlace, tables_in_worker
from modular_tf.processes.interpreter import child_environment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from modular_tf.loading.filesystem_tables import FilesystemTables
    from modular_tf.rules import Violation
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin

_TIME_TO_CLEAN_UP_S = 5.0


class IsolatedPlugin(NamedTuple):
    """A plugin that was loaded in a worker."""

    worker: Worker
    tables: tuple[FilesystemTables, ...]  # of its schemes
    notes: tuple[Violation, ...]  # what is wrong with it
    guarded: bool  # as in `WorkerOffer`


def load_in_worker(
    plugin: Plugin,
    config: Config,
    *,
    instance: str = "",
    environment: Mapping[str, str | None] = MappingProxyType({}),
) -> IsolatedPlugin:
    """Start a worker that loads a plugin, or serves an instance of it; "" is the plugin itself.

    `environment` has variables that the worker gets besides this process's, or instead of them;
    None for one that it does not get. Raises UnavailableError if the worker cannot be started, or
    ended (LD-144).
    """
    close_timeout_s = config.close_timeout_s or _TIME_TO_CLEAN_UP_S
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
        close_timeout_s=close_timeout_s,
        most_faults=config.most_worker_faults,
    )
    offer = worker.load()
    tables = tuple(
        tables_in_worker(scheme, slots, WorkerPlace(worker, index, offer.stores[index]))
        for index, (scheme, slots) in enumerate(zip(offer.schemes, offer.tables, strict=True))
    )
    return IsolatedPlugin(worker, tables, offer.finding.notes, offer.guarded)
