"""Watching plugin files: they appear, change and go; none of their code runs here."""
