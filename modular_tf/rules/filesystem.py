"""Rules of filesystem."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = ()
