"""The report for programs; `schema.json` beside this file describes it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from modular_tf.check.catalogue import all_checks
from modular_tf.check.level import Level
from modular_tf.check.outcome import Outcome, Verdict
from modular_tf.check.report.report import PluginReport, Report
from modular_tf.check.report.wording import remedy
from modular_tf.check.settings import KnownDeviation
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from collections import Counter

SCHEMA_VERSION = 1
"""Raised when a key changes its meaning or goes; new keys do not raise it."""

SCHEMA_PATH = os.path.join(os.path.dirname(__file__), "schema.json")


def as_json(report: Report) -> dict[str, Any]:
    """Return a report as JSON knows it, without the version of the schema."""
    return {
        "conforms": report.conforms,
        "has_checked": report.has_checked,
        "interrupted": report.interrupted,
        "summary": _counts(report.counts),
        "seconds": round(report.seconds, 3),
        "plugins": [_plugin(plugin) for plugin in report.plugins],
    }


def _counts(counts: Counter[Verdict]) -> dict[str, int]:
    return {verdict.value: counts[verdict] for verdict in Verdict}


def _plugin(plugin: PluginReport) -> dict[str, Any]:
    reached = plugin.level_reached
    return {
        "path": plugin.path,
        "name": plugin.name,
        "kinds": list(plugin.kinds),
        "profile": plugin.profile,
        "root": plugin.root,
        "repeated_by": list(plugin.repeated_by),
        "level": int(plugin.level),
        "level_reached": None if reached is None else int(reached),
        "conforms": plugin.conforms,
        "seed": plugin.seed,
        "seconds": round(plugin.seconds, 3),
        "remarks": list(plugin.remarks),
        "faults": list(plugin.faults),
        "unanswered": plugin.unanswered,
        "summary": _counts(plugin.counts),
        "outdated": [
            {"check": known.check_id, "subject": known.subject, "reason": known.reason}
            for known in plugin.outdated
        ],
        "checks": [_outcome(outcome) for outcome in plugin.outcomes],
    }


def _outcome(outcome: Outcome) -> dict[str, Any]:
    check = all_checks()[outcome.check_id]
    return {
        **outcome.as_dict(),
        "seconds": round(outcome.seconds, 6),
        "level": int(check.level),
        "group": check.group,
        "severity": check.rule.severity.value,
        "requirement": check.rule.requirement,
        "remedy": remedy(outcome),
        "source": check.rule.source,
    }


_ADDED = ("level", "group", "severity", "requirement", "remedy", "source")


def read_report(path: str) -> Report:
    """Read what `modular-tf check --json` has written before.

    Raises:
        ConfigError: The file cannot be read, or is no such report.
    """
    try:
        with open(path, encoding="utf-8") as stream:
            value = json.load(stream)
        if value["schema_version"] != SCHEMA_VERSION:
            raise ValueError(f"version {value['schema_version']!r} of the schema")  # noqa: TRY301
        plugins = tuple(_read_plugin(plugin) for plugin in value["plugins"])
        return Report(plugins, value["seconds"], interrupted=value["interrupted"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{path}: is no report of `modular-tf check --json`: {error}"
        raise ConfigError(message, path=path) from error


def _read_plugin(value: dict[str, Any]) -> PluginReport:
    return PluginReport(
        path=value["path"],
        name=value["name"],
        kinds=tuple(value["kinds"]),
        profile=value["profile"],
        level=Level(value["level"]),
        seed=value["seed"],
        outcomes=tuple(_read_outcome(check) for check in value["checks"]),
        outdated=tuple(
            KnownDeviation(known["check"], known["reason"], known["subject"])
            for known in value["outdated"]
        ),
        remarks=tuple(value["remarks"]),
        seconds=value["seconds"],
        root=value["root"],
        repeated_by=tuple(value.get("repeated_by", ())),
        faults=tuple(value["faults"]),
        unanswered=value["unanswered"],
    )


def _read_outcome(value: dict[str, Any]) -> Outcome:
    return Outcome.from_dict({key: value[key] for key in value if key not in _ADDED})
