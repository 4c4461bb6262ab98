"""Random sequences of operations, tried on a plugin and on a model of what it should be."""
