"""The structured log: events with a constant dotted name and key/values, silent until asked for.

`catalogue` lists every event; `EventLog` writes them; `modular_tf.service.log_output` shows them.
"""

from modular_tf.events.event_log import EventLog

__all__ = ["EventLog"]
