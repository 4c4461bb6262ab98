"""What this package keeps on disk: where, and how processes share it without harm."""
