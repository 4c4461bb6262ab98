"""The verbs that work with kernels and operations: `modular-tf kernels`, `ops` and `run`."""
