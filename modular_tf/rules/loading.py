"""Rules of loading."""

from __future__ import annotations

from modular_tf.rules import Rule

RULES: tuple[Rule, ...] = ()
