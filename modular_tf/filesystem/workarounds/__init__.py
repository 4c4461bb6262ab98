"""Filesystems of plugins with known defects; each class works around one of the defects."""
