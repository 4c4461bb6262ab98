"""Threads, locks, descriptors and objects that forks, interrupts and other threads do not break."""
