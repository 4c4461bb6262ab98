"""Mutation testing: small faults are put into the package, and tests have to notice them."""
