"""Tests of `modular_tf.gfile`, most of them recorded from TensorFlow."""
