"""Soaking: hours of mixed work in minutes, while plugins come and go; `scripts/soak` runs it."""
