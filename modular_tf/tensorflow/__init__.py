"""The schemes of a service inside TensorFlow: `tf.io.gfile`, `tf.data`, checkpoints, TensorBoard.

```python
import modular_tf.tensorflow as mtft

mtft.register()  # every scheme of the default service that TensorFlow lacks
```

TensorFlow is imported by `register` and not before.
"""

from __future__ import annotations

from modular_tf.tensorflow.registration import register, register_filesystem
from modular_tf.tensorflow.report import Outcome, Registration, SchemeRow

__all__ = ["Outcome", "Registration", "SchemeRow", "register", "register_filesystem"]
