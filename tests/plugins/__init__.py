"""C sources of the plugins that tests load, and what becomes of each variant (`matrix.toml`)."""
