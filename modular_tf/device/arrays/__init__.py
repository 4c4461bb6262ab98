"""Arrays in device memory, and what crosses the border as DLPack or buffers."""
