"""What the dynamic linker would do with a library."""
