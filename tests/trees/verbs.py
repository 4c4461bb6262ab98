"""What each face calls to copy, move, remove, mirror and walk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trees.faces import Ended
    from tests.trees.stores import TreeStore

Call = tuple[Any, ...]
WAYS: dict[str, Callable[..., Call]] = {
    "cli cp": lambda scheme, *places: ("cli", "cp", "-q", *places),
    "cli cp -r": lambda scheme, *places: ("cli", "cp", "-q", "-r", *places),
    "cli cp -r -n": lambda scheme, *places: ("cli", "cp", "-q", "-r", "-n", *places),
    "cli mv": lambda scheme, *places: ("cli", "mv", "-q", *places),
    "cli mv filtered": lambda scheme, *places: ("cli", "mv", "-q", "--include", "*", *places),
    "cli rm": lambda scheme, place: ("cli", "rm", "-q", place),
    "cli rm -r": lambda scheme, place: ("cli", "rm", "-q", "-r", place),
    "cli rm filtered": lambda scheme, place: ("cli", "rm", "-q", "-r", "--include", "*", place),
    "cli sync": lambda scheme, *places: ("cli", "sync", "-q", *places),
    "cli sync --delete": lambda scheme, *places: ("cli", "sync", "-q", "--delete", *places),
    "cli sync --delete -n": lambda scheme, *places: (
        "cli", "sync", "-q", "--delete", "-n", *places,
    ),
    "cli find": lambda scheme, place: ("cli", "find", place),
    "cli du": lambda scheme, place: ("cli", "du", place),
    "cli ls -R": lambda scheme, place: ("cli", "ls", "-R", place),
    "fsspec cp_file": lambda *call: ("fsspec", "cp_file", *call),
    "fsspec copy": lambda *call: ("fsspec", "copy", *call),
    "fsspec copy recursive": lambda *call: ("fsspec", "copy", *call, True, None, "raise"),
    "fsspec get": lambda *call: ("fsspec", "get", *call),
    "fsspec get recursive": lambda *call: ("fsspec", "get", *call, True),
    "fsspec get_file": lambda *call: ("fsspec", "get_file", *call),
    "fsspec put_file": lambda *call: ("fsspec", "put_file", *call),
    "fsspec put": lambda *call: ("fsspec", "put", *call),
    "fsspec put recursive": lambda *call: ("fsspec", "put", *call, True),
    "fsspec mv": lambda *call: ("fsspec", "mv", *call, True),
    "fsspec mv list": lambda scheme, *places: ("fsspec", "mv", scheme, *([one] for one in places)),
    "fsspec mv tree list": lambda scheme, *places: (
        "fsspec", "mv", scheme, *([one] for one in places), True,
    ),
    "fsspec rm": lambda *call: ("fsspec", "rm", *call),
    "fsspec rm recursive": lambda *call: ("fsspec", "rm", *call, True),
    "fsspec rm maxdepth": lambda *call: ("fsspec", "rm", *call, True, 5),
    "fsspec find": lambda *call: ("fsspec", "find", *call),
    "gfile copy": lambda scheme, *places: ("gfile", "copy", *places, True),
    "gfile rename": lambda scheme, *places: ("gfile", "rename", *places, True),
    "gfile remove": lambda scheme, place: ("gfile", "remove", place),
    "gfile rmtree": lambda scheme, place: ("gfile", "rmtree", place),
    "gfile walk": lambda scheme, place: ("gfile", "walk", place),
    "Filesystem.copy_file": lambda scheme, *places: ("filesystem", "copy_file", *places),
    "Filesystem.rename_file": lambda scheme, *places: ("filesystem", "rename_file", *places),
    "Filesystem.delete_file": lambda scheme, place: ("filesystem", "delete_file", place),
    "Filesystem.delete_recursively": lambda scheme, place: (
        "filesystem", "delete_recursively", place,
    ),
}  # fmt: skip
"""By name: makes the call from a scheme and URIs."""

COPIES_FILE = ("cli cp", "fsspec cp_file", "fsspec copy", "gfile copy", "Filesystem.copy_file")
COPIES_TREE = ("cli cp -r", "cli sync", "fsspec copy recursive")
MOVES_FILE = (
    "cli mv", "fsspec mv", "fsspec mv list", "gfile rename", "Filesystem.rename_file",
)  # fmt: skip
MOVES_TREE = ("cli mv", "cli mv filtered", "fsspec mv", "fsspec mv tree list", "gfile rename")
REMOVES_TREE = (
    "cli rm -r", "cli rm filtered", "fsspec rm recursive", "fsspec rm maxdepth", "gfile rmtree",
    "Filesystem.delete_recursively",
)  # fmt: skip
WALKS = ("cli find", "cli du", "cli ls -R", "gfile walk", "fsspec find")


def run(way: str, store: TreeStore, *uris: str) -> Ended:
    """Do something by the face that a way names."""
    return store.faces.call(*WAYS[way](store.scheme, *uris))
