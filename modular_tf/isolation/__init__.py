"""Plugins in processes of their own, which serve an application while it runs.

```
application ──────────► zygote ──► watcher ──► worker
 WorkerProcess, Worker    zygote     watcher     child
      └──────────── calls: sockets and shared memory ─────┘
```

The application's filesystem has functions instead of the plugin's (`native/core/worker.h`),
which make the call in the worker. A watcher reports how the worker ended.
"""
