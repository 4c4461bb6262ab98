"""Memory of devices, the arenas that it is allocated from, and their limits."""
