"""Rules of device plugins beyond what loading needs: what each function must do."""

from __future__ import annotations

from modular_tf.check.rules.device import (
    accounting,
    callbacks,
    copies,
    creation,
    entry,
    errors,
    events,
    exhaustion,
    facts,
    fills,
    host_memory,
    lifetime,
    memory,
    streams,
    threads,
    timers,
)

RULES = (
    *entry.RULES,
    *creation.RULES,
    *facts.RULES,
    *memory.RULES,
    *host_memory.RULES,
    *exhaustion.RULES,
    *accounting.RULES,
    *lifetime.RULES,
    *copies.RULES,
    *fills.RULES,
    *streams.RULES,
    *events.RULES,
    *timers.RULES,
    *callbacks.RULES,
    *errors.RULES,
    *threads.RULES,
)
