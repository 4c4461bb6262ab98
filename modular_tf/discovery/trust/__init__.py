"""Trust: whether a plugin may be opened, decided on its bytes and on who could have changed them.

A `TrustJudge` follows each path as the kernel would and looks at the owner, the mode and the access
control list of the file, of every directory above it and of every link on the way; then at the
hash in the RECORD of the distribution that brought it; then, where plugins are frozen, at the lock
file. It answers with a `TrustVerdict`, whose `checked` files are compared with what is mapped.
"""

from __future__ import annotations

from modular_tf.discovery.trust.judge import TrustJudge
from modular_tf.discovery.trust.lock_file import LockedFile, LockedPlugin, LockFile
from modular_tf.discovery.trust.policy import (
    FROZEN_VARIABLE,
    TrustPolicy,
    default_lock_path,
    frozen_by,
    parse_policy,
)
from modular_tf.discovery.trust.verdict import TrustVerdict
from modular_tf.discovery.trust.writers import TrustedWriters, trusted_writers

__all__ = [
    "FROZEN_VARIABLE",
    "LockFile",
    "LockedFile",
    "LockedPlugin",
    "TrustJudge",
    "TrustPolicy",
    "TrustVerdict",
    "TrustedWriters",
    "default_lock_path",
    "frozen_by",
    "parse_policy",
    "trusted_writers",
]
