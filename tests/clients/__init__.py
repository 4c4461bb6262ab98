"""Libraries that data engineers use, each on a store through our filesystem."""
