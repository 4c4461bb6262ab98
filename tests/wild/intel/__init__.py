"""Programs that compare Intel's kernels with numpy; see `__main__.py`."""
