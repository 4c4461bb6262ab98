"""The command line; it starts in `main`."""
