"""Filesystems: what C plugins and Python objects serve by scheme, behind one interface."""
