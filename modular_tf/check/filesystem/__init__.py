"""The checks of filesystem plugins."""
