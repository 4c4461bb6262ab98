"""Tests of the project's own promises: floors, names, documents."""
