"""The GCS filesystem of tensorflow-io."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from modular_tf.filesystem.workarounds.endpoints import named_server
from modular_tf.filesystem.workarounds.object_store import ObjectStore
from modular_tf.filesystem.workarounds.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping

    from modular_tf.filesystem.workarounds.endpoints import Server

_ENDPOINTS = ("CLOUD_STORAGE_EMULATOR_ENDPOINT", "CLOUD_STORAGE_TESTBENCH_ENDPOINT")


class Gcs(ObjectStore):
    """Google Cloud Storage. [any thread]

    To the plugin no path is a directory, and its reads of more than 128 KiB overflow a fixed buffer
    in the heap; opening a longer file for append reads it, so that appending rewrites it.
    """

    most_read = 128 << 10
    credential_variables = ("GOOGLE_APPLICATION_CREDENTIALS",)
    other_credentials = "the account of this machine was used, or none"
    # The first use crashes when one of these is unset.
    defaults: ClassVar[Mapping[str, str]] = {
        "GCS_READ_CACHE_MAX_SIZE_MB": "0",
        "GCS_READ_CACHE_MAX_STALENESS": "0",
        "GCS_STAT_CACHE_MAX_AGE": "0",
        "GCS_STAT_CACHE_MAX_ENTRIES": "1024",
    }
    # With a cache, the plugin itself reads more than 128 KiB.
    forced: ClassVar[Mapping[str, str]] = {"GCS_READ_CACHE_BLOCK_SIZE_MB": "0"}
    # With "compose" an append fails on a temporary file that is not there.
    forbidden = ("GCS_APPEND_MODE",)
    variables = (*_ENDPOINTS, *credential_variables, *forbidden)

    @classmethod
    def prepare_environment(
        cls,
        environment: MutableMapping[str, str],
        *,
        guarded: bool,  # noqa: ARG003
    ) -> list[str]:
        """Set and unset variables with which the plugin would crash."""
        changed = []
        for name, value in cls.defaults.items():
            environment.setdefault(name, value)
        for name, value in cls.forced.items():
            if environment.get(name, value) != value:
                changed.append(f"{name} was set to {value!r}, from {environment[name]!r}")
            environment[name] = value
        present = [name for name in cls.forbidden if name in environment]
        return changed + [f"{name} was unset, from {environment.pop(name)!r}" for name in present]

    @classmethod
    def server(cls, uri: str, environment: Mapping[str, str]) -> Server | None:  # noqa: ARG003
        """Return the server that a variable names; calls to a dead one retry for minutes."""
        return named_server(environment, *_ENDPOINTS)

    def _create_directory(self, uri: str) -> None:
        Store.create_dir(self, uri)
