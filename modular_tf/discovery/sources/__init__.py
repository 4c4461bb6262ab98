"""The nine sources of plugin files and the places that they search."""
