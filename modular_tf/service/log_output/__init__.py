"""Output of the structured log, and collecting plugins' log messages."""

from modular_tf.service.log_output.configuring import (
    LEVELS,
    OUTPUTS,
    VARIABLE,
    configure_logging,
    follow_environment,
)

__all__ = ["LEVELS", "OUTPUTS", "VARIABLE", "configure_logging", "follow_environment"]
