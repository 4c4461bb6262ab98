"""Why a name serves, does not serve, or is not there: one answer for people and programs."""

from modular_tf.service.why.answer import Explanation, Fact
from modular_tf.service.why.explain import explain

__all__ = ["Explanation", "Fact", "explain"]
