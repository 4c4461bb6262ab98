"""Arrays in device memory, and their exchange as DLPack tensors and buffers."""
