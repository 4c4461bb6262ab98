"""Conformance: what a plugin must do, tried on it check by check, in processes of their own."""
