"""Facts of the C interfaces as data; the matching headers lie in `modular_tf/include`."""
