"""Plugins beside everything else that a process does: forks, threads, signals, other allocators."""
