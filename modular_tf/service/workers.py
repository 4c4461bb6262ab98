"""The workers of one service."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from modular_tf.filesystem.plugin_filesystem import PluginFilesystem
from modular_tf.isolation.worker_records import WorkerRecord, record_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.isolation.worker import Worker


def worker_of(filesystem: object) -> Worker | None:
    """Return the worker of a filesystem, None for one without."""
    place = filesystem.tables.place if isinstance(filesystem, PluginFilesystem) else None
    return None if place is None else cast("Worker", place.worker)


def workers_of(filesystems: Iterable[object]) -> list[WorkerRecord]:
    """Return what the workers of some filesystems do now, in order of their plugins."""
    workers = filter(None, map(worker_of, filesystems))
    used = {id(worker): worker for worker in workers if worker.is_used}
    return sorted(map(record_of, used.values()), key=lambda found: (found.plugin, found.instance))
