"""What the checks of plugins came to, for people and for programs."""
