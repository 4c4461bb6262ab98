"""Elements of HTML and SVG whose text may come from plugins: nothing in it becomes markup."""

from __future__ import annotations

from xml.etree import ElementTree as ET

_CONTROLS = (*range(0x20), *range(0x7F, 0xA0), 0xFFFE, 0xFFFF)
_NO_TEXT = {code: "�" for code in _CONTROLS if chr(code) not in "\t\n\r"}


def text_of_xml(text: str) -> str:
    """Return text as XML and HTML can hold it: without control characters and broken bytes."""
    return text.translate(_NO_TEXT).encode("utf-8", "replace").decode()


def element(tag: str, *content: str | ET.Element, **attributes: str) -> ET.Element:
    """Return an element; text is escaped when it is written.

    Args:
        tag: Its name.
        content: Text and elements, in their order.
        attributes: By their names, where `_` stands for `-` and one at the end for nothing.
    """
    named = {name.rstrip("_").replace("_", "-"): text_of_xml(v) for name, v in attributes.items()}
    made = ET.Element(tag, named)
    for part in content:
        if isinstance(part, ET.Element):
            made.append(part)
        elif len(made):
            made[-1].tail = (made[-1].tail or "") + text_of_xml(part)
        else:
            made.text = (made.text or "") + text_of_xml(part)
    return made
