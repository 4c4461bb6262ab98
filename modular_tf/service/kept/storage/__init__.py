"""Files of this package: their directories, formats, and sharing between processes."""
