"""The report as a badge: one line of SVG for the page of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from modular_tf.check.report.markup import element

if TYPE_CHECKING:
    from modular_tf.check.report.report import PluginReport, Report

_LABEL = "modular-tf"
_GREEN, _RED, _GREY = "#1a7f37", "#b3261e", "#57606a"
_HEIGHT, _BASELINE = 20, 14
_PER_LETTER, _MARGIN = 6.5, 6.0  # of the font below; the text is stretched to fit


def badge(report: Report) -> bytes:
    """Return a badge that says whether the plugins of a run conform, and up to which level."""
    words, colour = _verdict(report)
    left, right = _width(_LABEL), _width(words)
    svg = element(
        "svg",
        element("title", f"{_LABEL}: {words}"),
        *_field(0, left, _GREY, _LABEL),
        *_field(left, right, colour, words),
        xmlns="http://www.w3.org/2000/svg",
        width=f"{left + right:g}",
        height=str(_HEIGHT),
        role="img",
        aria_label=f"{_LABEL}: {words}",
    )
    return f"{ET.tostring(svg, encoding='unicode')}\n".encode()


def _verdict(report: Report) -> tuple[str, str]:
    if not report.has_checked:
        return "nothing checked", _GREY
    if report.interrupted:
        return "interrupted", _GREY
    if len(report.plugins) == 1:
        return _of_plugin(report.plugins[0])
    good = sum(plugin.conforms for plugin in report.plugins)
    colour = _GREEN if report.conforms else _RED
    return f"{good} of {len(report.plugins)} plugins conform", colour


def _of_plugin(plugin: PluginReport) -> tuple[str, str]:
    reached = plugin.level_reached or 0
    if plugin.conforms:
        return f"conforms, level {reached:d}", _GREEN
    if not plugin.bad:
        return "not known to conform", _GREY
    return f"reaches level {reached:d} of {plugin.level:d}", _RED


def _width(words: str) -> float:
    return len(words) * _PER_LETTER + 2 * _MARGIN


def _field(start: float, width: float, colour: str, words: str) -> tuple[ET.Element, ET.Element]:
    return (
        element("rect", x=f"{start:g}", width=f"{width:g}", height=str(_HEIGHT), fill=colour),
        element(
            "text",
            words,
            x=f"{start + _MARGIN:g}",
            y=str(_BASELINE),
            fill="#ffffff",
            font_family="Verdana, DejaVu Sans, sans-serif",
            font_size="11",
            textLength=f"{width - 2 * _MARGIN:g}",
        ),
    )
