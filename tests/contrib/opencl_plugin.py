"""The driver of the OpenCL plugin in tests: PoCL."""

from __future__ import annotations

PLATFORM = "Portable Computing Language"
"""What PoCL calls itself."""

ON_POCL = {"MTF_OPENCL_PLATFORM": PLATFORM}
"""The environment of tests: PoCL or an error, whatever other drivers the machine has."""

TWO_DEVICES = {**ON_POCL, "POCL_DEVICES": "pthread pthread"}
"""PoCL shows the processor twice."""
