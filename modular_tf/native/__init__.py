"""The native code, and the modules that call it."""
