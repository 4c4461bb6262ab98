"""The HDFS filesystem of tensorflow-io."""

from __future__ import annotations

import os
from typing import Any, ClassVar

from modular_tf.errors import NotFoundError, UnavailableError
from modular_tf.filesystem.workarounds.store import Store
from modular_tf.native.library import Library


class Hdfs(Store):
    """HDFS, by libhdfs.so, which the plugin opens at its first call. [any thread]

    Without that library the first call says NOT_FOUND, as if a file were missing, and every later
    one INTERNAL, even once the library is there. So the host opens it before the plugin does.
    """

    variables = ("HADOOP_HDFS_HOME",)
    libraries: ClassVar[tuple[str, ...]] = (
        "$HADOOP_HDFS_HOME/lib/native/libhdfs.so",
        "libhdfs.so",
    )

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._has_library = self.is_in_worker  # whose plugin opens it there

    def require(self, operation: str, uri: str) -> None:
        """Return if the library can be opened, by any of its places.

        Else the message of `UnavailableError` has the dynamic linker's reason for each place.
        """
        if self._has_library:
            return
        reasons = []
        for place in map(os.path.expandvars, self.libraries):
            if place.startswith("$"):
                reasons.append(f"{place.split('/')[0][1:]} is not set")
                continue
            try:
                Library.open(place)
            except NotFoundError as error:
                reasons.append(str(error))
            else:
                self._has_library = True
                return
        needed = f"{self.plugin} needs {os.path.basename(self.libraries[0])}: {'; '.join(reasons)}"
        raise UnavailableError.of(operation, uri, needed, plugin=self.plugin)

    @classmethod
    def missing_library(cls) -> str:
        """Return why the plugin will not find the library; the linker's search is not predicted."""
        [variable], place = cls.variables, cls.libraries[0]
        path = os.path.expandvars(place)
        if variable not in os.environ:
            return f"{variable} is not set: set it to the folder that has {place}"
        if not os.path.exists(path):
            return f"{path} does not exist: correct {variable}"
        return ""
