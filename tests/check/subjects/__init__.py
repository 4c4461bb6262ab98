"""How checks reach a filesystem: the raw subject, the one of the host, the stage of both."""
