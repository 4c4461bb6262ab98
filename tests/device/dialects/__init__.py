"""One plugin in every generation of the device interface."""
