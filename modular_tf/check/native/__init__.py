"""The native side of the kit: slots as C has them, guarded memory, an allocator that checks."""
