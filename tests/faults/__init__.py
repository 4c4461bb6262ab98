"""Work on a store that fails at random, by a real plugin; `scripts/faults` runs much of it."""
