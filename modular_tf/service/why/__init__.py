"""Explanations why a name is served, is not served, or does not exist."""

from modular_tf.service.why.answer import Explanation, Fact
from modular_tf.service.why.explain import explain

__all__ = ["Explanation", "Fact", "explain"]
