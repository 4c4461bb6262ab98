"""Devices: loading their plugins, and listing them."""
