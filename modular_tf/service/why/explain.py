"""Finding out what a name can mean, and collecting the facts about each meaning."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.filesystem.scheme import scheme_of
from modular_tf.service.why.absence import about_absence
from modular_tf.service.why.answer import STATE, Explanation
from modular_tf.service.why.device_types import about_device
from modular_tf.service.why.distributions import about_distribution
from modular_tf.service.why.operations import about_op
from modular_tf.service.why.paths import about_path
from modular_tf.service.why.plugins import about_plugin
from modular_tf.service.why.schemes import about_scheme

if TYPE_CHECKING:
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService


def explain(service: PluginService, name: str) -> Explanation:
    """Return the explanation of a name: plugin, path, scheme, URI, device, type or distribution.

    Plugins are searched for if they were not yet, and a file that no search found is looked at.
    Nothing is loaded, except for a device with a number: its plugin is asked how many there are;
    and for a name that may be an operation's: plugins with kernels are asked for these.
    """
    if not service.report().searched:
        service.discover()
    scheme = scheme_of(name) or name
    named = [record for record in service.plugins() if _has_name(record, name)]
    facts = [
        *(fact for record in named for fact in about_plugin(service, record)),
        *about_path(service, name),
        *about_scheme(service, scheme),
        *about_device(service, name),
        *about_distribution(service, name),
        *about_op(service, name),
    ]
    if not facts:
        facts += about_absence(service, name, scheme)
    known = any(fact.stage == STATE for fact in facts)
    return Explanation(name, known=known, facts=tuple(facts))


def _has_name(record: PluginRecord, name: str) -> bool:
    """Return whether a name is the plugin's or that of its file."""
    return name in (record.name, os.path.basename(record.path or ""))
