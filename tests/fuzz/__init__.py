"""Fuzzing: what reads bytes of strangers, against an oracle, with seeds that reproduce.

Each target is a module with two functions (`tests.fuzz.target.Target`); `scripts/fuzz` runs any
number of inputs, the test suite a small share of them.
"""
