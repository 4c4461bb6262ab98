"""Which plugin files appear, change and go while the process runs; nothing of theirs is run."""
