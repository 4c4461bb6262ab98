"""The nine sources of plugin files, and where they look."""
