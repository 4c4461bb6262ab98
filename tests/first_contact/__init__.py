"""Tests of first contact: plugins that end, block or rob the process which they are tried in."""
