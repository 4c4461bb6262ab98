"""Changes of plugin files while a service runs."""
