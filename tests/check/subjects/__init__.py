"""How checks reach a filesystem: by its slots, through the host, and the session of both."""
