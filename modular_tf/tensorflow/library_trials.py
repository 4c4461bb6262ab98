"""Trying libraries in child processes, to learn what they do where TensorFlow loads them.

All of it is first contact, but for whom it concerns: a library that is no plugin is tried too,
since TensorFlow maps it; and a user who wants no first contact has it here, since the alternative
is to run the code in the process that asks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.first_contact.limits import Limits
from modular_tf.first_contact.task import Task
from modular_tf.first_contact.trials import try_plugins
from modular_tf.rules.loading import INIT_SYMBOL, KIND_SERVED
from modular_tf.service.kept.scan_cache import ScanCache
from modular_tf.service.plugin_scan import scan

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from modular_tf.first_contact.finding import Finding
    from modular_tf.service.configuration import Config
    from modular_tf.service.plugin import Plugin

# A library without an init function of ours is mapped all the same, and its constructors run.
_MAPPED_ALL_THE_SAME = frozenset((INIT_SYMBOL.id, KIND_SERVED.id))


class Trial(NamedTuple):
    """What came of trying a library.

    Attributes:
        finding: What was found; None where it was not tried.
        why_untried: Why not.
    """

    finding: Finding | None
    why_untried: str = ""


def try_libraries(paths: Iterable[str], kinds: Collection[str], config: Config) -> dict[str, Trial]:
    """Try libraries in child processes and return what came of each, by its path.

    Nothing of them runs in this process. What is not trusted is not tried.

    Args:
        paths: The libraries; a path to a file that is named already counts as that file.
        kinds: What is tried of each, of `device`, `filesystem` and `kernel`, after mapping it.
        config: What the user decided about trust, and how long one may take.

    Raises:
        ShortageError: This process has too few descriptors or too little memory now.
    """
    wanted = SearchPaths(arguments=tuple(paths), sources=frozenset((Source.ARGUMENT,)))
    if not wanted.arguments:
        return {}
    plugins = scan(discover(wanted).candidates, config, ScanCache.of_process())
    untried = {id(plugin): why for plugin in plugins if (why := _why_untried(plugin))}
    tried = [plugin for plugin in plugins if id(plugin) not in untried]
    limits = Limits(config.first_contact_timeout_s, config.first_contact_memory_mib)
    findings = try_plugins([_task(plugin, kinds) for plugin in tried], limits) if tried else []
    found = {id(plugin): Trial(finding) for plugin, finding in zip(tried, findings, strict=True)}
    return {
        path: found.get(id(plugin)) or Trial(None, untried[id(plugin)])
        for plugin in plugins
        for path in (plugin.path, *(twin.path for twin in plugin.candidate.twins))
    }


def _why_untried(plugin: Plugin) -> str:
    """Return why a library is not tried; "" where it is."""
    if plugin.trust.refused is not None:
        return plugin.trust.refused.message
    for problem in plugin.facts.problems:
        if problem.is_error and problem.rule_id not in _MAPPED_ALL_THE_SAME:
            return problem.message
    return ""


def _task(plugin: Plugin, kinds: Collection[str]) -> Task:
    of_plugin = {kind.value for kind in plugin.facts.kinds}
    return Task(
        plugin=plugin.name,
        file=plugin.path,
        companions=plugin.facts.companions,
        absent=plugin.facts.absent,
        kinds=tuple(sorted(of_plugin.intersection(kinds))),
        checked=plugin.checked or None,
    )
