"""The report as one HTML page, and as a badge: a line of SVG for the page of a project.

Both are templates of Jinja2, which escapes whatever a plugin has said.
"""

from __future__ import annotations

import base64
import hashlib
import os
from typing import TYPE_CHECKING, Any

from modular_tf.check.catalogue import all_checks
from modular_tf.check.outcome import BAD, Verdict
from modular_tf.check.report import text, wording
from modular_tf.check.report.comparison import compare
from modular_tf.check.report.junit import text_of_xml
from modular_tf.check.report.report import Conformance
from modular_tf.errors import ConfigError

if TYPE_CHECKING:
    from modular_tf.check.report.report import Report

_SHOWN = (*BAD, Verdict.BLOCKED, Verdict.WARNED, Verdict.NOTED, Verdict.KNOWN)
_COLOURS = {"good": "#1a7f37", "bad": "#b3261e", "open": "#57606a"}
_PER_LETTER, _MARGIN = 6.5, 6.0  # of the badge's font; the text is stretched to fit


def require_templates() -> None:
    """Raise `ConfigError` where the library that makes pages and badges is not installed."""
    try:
        import jinja2  # noqa: F401, PLC0415  (an extra, and slow to load)
    except ImportError:
        raise ConfigError("Jinja2 is not installed: modular_tf[check] brings it") from None


def html_page(report: Report, before: Report | None = None) -> bytes:
    """Return a report as a page that needs no network and no script.

    What plugins have said is text there, whatever it looks like; the page's own policy runs no
    script and loads nothing. With `before`, an earlier report, it begins with what is better or
    worse.
    """
    tried = [all_checks()[each.check_id] for plugin in report.plugins for each in plugin.outcomes]
    levels = sorted({check.level for check in tried})
    filters = {
        "level": {int(level): f"{level:d} {level.name.lower()}" for level in levels},
        "family": {group: group for group in sorted({check.group for check in tried})},
    }
    style = _rendered("page.css", colours=_COLOURS, filters=filters)
    page = _rendered(
        "page.html",
        report=report,
        changes=None if before is None else compare(before, report),
        checks=all_checks(),
        filters=filters,
        style=style,
        digest=base64.b64encode(hashlib.sha256(style.encode()).digest()).decode(),
        shown=_SHOWN,
        verdicts=list(Verdict),
        text=text,
        wording=wording,
    )
    return f"{text_of_xml(page)}\n".encode()


def badge(report: Report) -> bytes:
    """Return a badge that says whether the plugins of a run conform, and up to which level.

    Of checks that were selected it says no level.
    """
    said = report.conformance
    words = said.value
    if len(report.plugins) > 1 and report.has_checked:
        good = sum(plugin.conforms for plugin in report.plugins)
        words = f"{good} of {len(report.plugins)} plugins conform"
    elif said in {Conformance.CONFORMS, Conformance.DEVIATES}:
        (plugin,) = report.plugins
        words = plugin.verdict
        of = "" if said is Conformance.CONFORMS else f" of {plugin.level:d}"
        if not plugin.only:
            words = f"{words}, level {plugin.level_reached or 0:d}{of}"
    fields, start = [], 0.0
    for shown, colour in (("modular-tf", _COLOURS["open"]), (words, _COLOURS[said.style])):
        width = len(shown) * _PER_LETTER
        fields.append((start, width, colour, shown))
        start += width + 2 * _MARGIN
    svg = _rendered("badge.svg", fields=fields, width=start, margin=_MARGIN)
    return f"{svg}\n".encode()


def _rendered(template: str, **values: Any) -> str:
    require_templates()
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415  (likewise)

    environment = Environment(
        autoescape=True,
        loader=FileSystemLoader(os.path.dirname(__file__)),
        lstrip_blocks=True,
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template(template).render(values)
