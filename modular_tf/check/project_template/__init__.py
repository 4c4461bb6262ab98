"""The project that a plugin author begins with: names, templates, and writing them."""
