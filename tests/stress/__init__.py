"""Stress campaigns: interrupts, forks, refreshes and closes at random moments, mixed work."""
