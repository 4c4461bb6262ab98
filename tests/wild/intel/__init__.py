"""Programs that compare Intel's kernels with numpy; children of the tests run them as scripts."""
