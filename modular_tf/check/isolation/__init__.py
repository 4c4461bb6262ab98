"""Processes for checks: what a plugin does to one becomes a verdict, and the others go on.

Three generations, as at first contact: a zygote that has imported everything and runs no plugin's
code; watchers, its forks, each the reaper of what its children start; and a child per group of
checks, which a watcher replaces where a check took it down.
"""
