"""C sources of the plugins that tests load, and what is expected of each variant."""
