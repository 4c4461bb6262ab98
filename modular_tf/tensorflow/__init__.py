"""The schemes of a service inside TensorFlow: `tf.io.gfile`, `tf.data`, checkpoints, TensorBoard.

```python
import modular_tf.tensorflow as mtft

mtft.register()  # every scheme of the default service that TensorFlow lacks
```

TensorFlow is imported by `register` and not before.
"""

from __future__ import annotations

from modular_tf.tensorflow.registration import (
    Outcome,
    Registration,
    SchemeRow,
    register,
    register_filesystem,
)

__all__ = ["Outcome", "Registration", "SchemeRow", "register", "register_filesystem"]
