"""Device memory, the arenas it comes from, and their limits."""
