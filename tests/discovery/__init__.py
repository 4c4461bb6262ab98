"""Tests of discovery and probe."""
