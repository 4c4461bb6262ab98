"""A host for TensorFlow's filesystem and device plugins, without TensorFlow."""

__version__ = "0.1.0"
