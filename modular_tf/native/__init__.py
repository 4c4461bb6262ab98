"""The only native code, and the only doors to it."""
