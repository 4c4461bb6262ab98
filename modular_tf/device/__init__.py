"""Devices: platforms of C plugins, Python factories, and the registry that names their devices."""
