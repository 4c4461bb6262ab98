"""The report as a badge: one line of SVG for the page of a project."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from modular_tf.check.report.markup import element
from modular_tf.check.report.report import Conformance

if TYPE_CHECKING:
    from modular_tf.check.report.report import Report

_LABEL = "modular-tf"
_GREEN, _RED, _GREY = "#1a7f37", "#b3261e", "#57606a"
_COLOURS = {
    Conformance.CONFORMS: _GREEN,
    Conformance.DEVIATES: _RED,
    Conformance.UNKNOWN: _GREY,
    Conformance.UNCHECKED: _GREY,
}
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
    said = report.conformance
    if len(report.plugins) > 1 and report.has_checked:
        good = sum(plugin.conforms for plugin in report.plugins)
        return f"{good} of {len(report.plugins)} plugins conform", _COLOURS[said]
    words = said.value
    if said in {Conformance.CONFORMS, Conformance.DEVIATES}:
        (plugin,) = report.plugins
        reached = plugin.level_reached or 0
        of = "" if said is Conformance.CONFORMS else f" of {plugin.level:d}"
        words = f"{words}, level {reached:d}{of}"
    return words, _COLOURS[said]


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
