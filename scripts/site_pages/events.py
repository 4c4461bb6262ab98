"""The page on the events of the structured log."""

from __future__ import annotations

from modular_tf.events.catalogue import EVENTS
from site_pages.markdown import code, table

_HEAD = """\
# Log events

`modular-tf --log json`, `MODULAR_TF_LOG` and `modular_tf.configure_logging()` show the structured
log. Besides the keys of this table each event has `event`, `level`, `logger` and `timestamp`. Names
and keys are part of the contract: a name is never used for anything else, and keys are only added.
"""


def page() -> str:
    """Return the page on every event."""
    rows = [
        (code(event.name), ", ".join(event.levels), ", ".join(map(code, event.keys)), event.meaning)
        for event in EVENTS
    ]
    return f"{_HEAD}\n{table(('event', 'levels', 'keys', 'what happened'), rows)}"
