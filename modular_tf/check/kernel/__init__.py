"""The checks of kernel plugins."""
