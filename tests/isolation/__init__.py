"""Tests of plugins in worker processes."""
