"""The report for programs; `schema.json` beside this file describes it."""

from __future__ import annotations

import json
import os
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import Outcome, Verdict
from modular_tf.check.report.report import PluginReport, Report
from modular_tf.check.report.wording import remedy, rule_of
from modular_tf.codec import decode, encode
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
    values = encode(plugin)
    values["checks"] = [_with_rule(outcome) for outcome in plugin.outcomes]
    values["outdated"] = [
        {"check": known["check_id"], "subject": known["subject"], "reason": known["reason"]}
        for known in values["outdated"]
    ]
    del values["outcomes"]
    return {
        **values,
        "level_reached": encode(plugin.level_reached),
        "conforms": plugin.conforms,
        "seconds": round(plugin.seconds, 3),
        "summary": _counts(plugin.counts),
    }


def _with_rule(outcome: Outcome) -> dict[str, Any]:
    check, stated = all_checks()[outcome.check_id], rule_of(outcome)
    values = encode(outcome)
    del values["see"], values["wants_root"]  # the message says it
    return {
        **values,
        "seconds": round(outcome.seconds, 6),
        "level": int(check.level),
        "group": check.group,
        "severity": check.rule.severity.value,
        "requirement": stated.requirement,
        "remedy": remedy(outcome),
        "source": stated.source,
    }


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
        plugins = tuple(map(_read_plugin, value["plugins"]))
        return Report(plugins, value["seconds"], interrupted=value["interrupted"])
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        message = f"{path}: is no report of `modular-tf check --json`: {error}"
        raise ConfigError(message, path=path) from error


def _read_plugin(value: dict[str, Any]) -> PluginReport:
    absent = {"broken_rule": "", "see": [], "wants_root": False}
    outcomes = [
        {each.name: {**absent, **check}[each.name] for each in fields(Outcome)}
        for check in value["checks"]
    ]
    outdated = [{**known, "check_id": known["check"]} for known in value["outdated"]]
    found = {"repeated_by": [], "only": [], **value, "outcomes": outcomes, "outdated": outdated}
    for known in outdated:
        del known["check"]
    return decode(PluginReport, {each.name: found[each.name] for each in fields(PluginReport)})
