"""The zygote of workers: has imported what a worker needs, and never runs a plugin's code."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NoReturn

from modular_tf.filesystem.workarounds import import_stores
from modular_tf.isolation.rights import rights_here
from modular_tf.isolation.watcher import watch_over_worker
from modular_tf.loading.published import stores_of
from modular_tf.processes.zygote import serve_zygote
from modular_tf.rules import loader_rules

_IDLE_S = 60.0


def serve(**own: Any) -> NoReturn:
    """Fork a watcher for each worker, then end the process."""
    watch = watch_over_worker
    serve_zygote(**own, warm_up=_warm_up, watch=watch, idle_s=_IDLE_S, is_lasting=True)


def _warm_up() -> None:
    """Do once what every worker would do again."""
    loader_rules()
    stores_of("")  # which reads the table, and compiles its globs
    import_stores()
    import_module("hashlib")
    rights_here()
