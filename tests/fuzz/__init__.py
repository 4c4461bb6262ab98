"""Fuzzing: what reads bytes of strangers, against an oracle, with seeds that reproduce.

`tests.fuzz.campaign` names the targets; `scripts/fuzz` runs any number of inputs, the tests a few.
"""
