"""The verbs of `modular-tf quarantine`."""
