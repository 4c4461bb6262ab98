"""Devices: the platforms of C plugins, factories in Python, and the registry of devices."""
