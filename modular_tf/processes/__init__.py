"""Processes in which plugins run, and those that watch over them.

```
application ──► zygote ──────► watchers ──────► children
 Zygotes, Lane   serve_zygote   watch_over       become_child, Report
```

- The *zygote* has imported everything once, and forks watchers. `Zygotes` starts it.
- A *watcher* does one *job* after the other, which arrive through a `Lane`, and reports the
  result of each. It forks a *child* for a job (`WatchedChild`), keeps the time, and ends all that
  the child has started.
- A *child* runs a plugin's code and writes a *report* of what it does.

The caller defines what a job is, what a child does with it, and what follows from its end.
"""
