"""What a plugin in a worker process may have been refused, for messages."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.filesystem.scheme import is_of_this_machine

if TYPE_CHECKING:
    from modular_tf.errors import ModularTFError
    from modular_tf.loading.filesystem_tables import FilesystemTables

# As the C library says EACCES and EPERM.
_REFUSED = re.compile("permission denied|operation not permitted", re.IGNORECASE)


def with_limits(error: ModularTFError, tables: FilesystemTables) -> ModularTFError:
    """Return an error that tells what its worker is restricted to, where that may be the cause.

    A store refuses by a code of the same kind, in words of its own.
    """
    if tables.place is None:
        return error
    is_denied = error.code is Code.PERMISSION_DENIED and is_of_this_machine(tables.scheme)
    if not is_denied and not _REFUSED.search(error.message):
        return error
    why = tables.place.worker.why_refused()
    if not why or error.rule is not None:
        return error
    return type(error)(
        f"{error.message}; {why}",
        code=error.code,
        plugin=error.plugin,
        path=error.path,
        operation=error.operation,
    )
