"""One library of a plugin in one service: mapped, or to be mapped when somebody wants it.

A plugin has one generation at a time, and another one when its file is replaced while the service
runs; the old one then serves what is open, and nothing new.
"""

from __future__ import annotations

from modular_tf.plugin_generation.generation import Generation

__all__ = ["Generation"]
