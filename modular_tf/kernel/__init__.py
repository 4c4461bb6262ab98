"""Kernels and operations: definitions, selection, running."""
