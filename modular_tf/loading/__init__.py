"""Mapping a probed library, and copying, checking and protecting its tables."""
