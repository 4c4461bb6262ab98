"""First contact: a plugin's code runs in a child process before it runs in the application."""
