"""Names of `under_load`, until no module imports them from here."""

from modular_tf.check.under_load import at_once as run_at_once

__all__ = ["run_at_once"]
