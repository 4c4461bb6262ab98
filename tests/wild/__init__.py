"""Third-party plugins end to end: real binaries, loopback stores, subjects in child processes."""
