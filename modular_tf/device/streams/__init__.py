"""Streams, events, timers, copies and callbacks: work of a device in its order."""
