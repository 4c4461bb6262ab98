"""The work of the dynamic linker: finding libraries and resolving symbols, without loading."""
