"""Finding plugins and judging them by their bytes; nothing of theirs is run here."""
