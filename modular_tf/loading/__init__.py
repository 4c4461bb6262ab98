"""From a probed library to a mapped one, and to checked, write-protected tables."""
