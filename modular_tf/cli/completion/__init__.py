"""Completion of command lines in shells, by argcomplete, an extra."""
