"""Loopback servers that stand in for cloud stores; each one runs as `python -m tests.emulators.X`.

They answer as much of a store's protocol as real clients ask for, and a request that they do not
know gets 501 with its path, so that a gap is seen at once.
"""
