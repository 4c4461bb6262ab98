"""Registers all schemes on import: `import modular_tf.tensorflow.auto`.

For programs that import tensorflow_io for its filesystems today. `MODULAR_TF_TENSORFLOW=0` turns it
off. A scheme that TensorFlow has already is left out, as the attribute `registration` shows.
"""

from __future__ import annotations

import os

from modular_tf.tensorflow.registration import SWITCH, register

registration = None if os.environ.get(SWITCH) == "0" else register()
