"""What lasts between runs."""
