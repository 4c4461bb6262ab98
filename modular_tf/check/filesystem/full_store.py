"""Places where there is no room, and how a check comes to one."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from modular_tf.check.expectation import Unsupported
from modular_tf.check.filesystem.local_disk import local_path
from modular_tf.filesystem.configuration import Option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.check.filesystem.ground import FilesystemGround

_FULL_DEVICE = "/dev/full"


@contextmanager
def file_without_room(ground: FilesystemGround, name: str) -> Iterator[str]:
    """Give the URI of a file that can be opened for writing, and takes no byte.

    On a local disk it is a link to a device that is always full. Elsewhere the plugin is told to
    hold one byte at most, by its own option `capacity_bytes`, or whatever the profile's option
    `capacity_option` names.

    Raises:
        Unsupported: There is no such place.
    """
    uri = ground.path(name)
    neighbour = local_path(ground, ground.make_file(f"beside-{name}"))
    if neighbour is None:
        with _one_byte_at_most(ground):
            yield uri
    elif not os.path.exists(_FULL_DEVICE):
        raise Unsupported(f"this system has no {_FULL_DEVICE}")
    else:
        os.symlink(_FULL_DEVICE, os.path.join(os.path.dirname(neighbour), name))
        yield uri


@contextmanager
def _one_byte_at_most(ground: FilesystemGround) -> Iterator[None]:
    name = ground.target.options.capacity_option
    before = _option(ground, name)
    _set(ground, Option(name, (1,)))
    try:
        yield
    finally:
        _set(ground, before)


def _option(ground: FilesystemGround, name: str) -> Option:
    answer = _settings(ground).get_filesystem_configuration_option(name)
    if not answer.ok or answer.value is None:
        raise Unsupported(f"nothing limits this store: it has no option {name!r}")
    option: Option = answer.value
    return option


def _set(ground: FilesystemGround, option: Option) -> None:
    answer = _settings(ground).set_filesystem_configuration_option(option)
    if not answer.ok:
        raise Unsupported(f"option {option.name!r} cannot be set: {answer.message}")


def _settings(ground: FilesystemGround) -> Any:
    subject = ground.subject
    if not hasattr(subject, "set_filesystem_configuration_option"):
        raise Unsupported("options cannot be set in this pass")
    return subject
