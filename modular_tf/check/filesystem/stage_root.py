"""The directory that each check gets for itself, and its end."""

from __future__ import annotations

import os
import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.breach import Breach
from modular_tf.check.expectation import Blocked, Deviation, Unsupported
from modular_tf.check.filesystem.removal import remove_tree
from modular_tf.check.target import LOCAL_SCHEMES
from modular_tf.filesystem.uri import dirname

if TYPE_CHECKING:
    from typing import NoReturn

    from modular_tf.check.answers import Answer
    from modular_tf.check.check import Check
    from modular_tf.check.filesystem.subject import FilesystemSubject
    from modular_tf.check.target import Target

_FINE = frozenset({Code.OK, Code.ALREADY_EXISTS})
_NO_PLACE = frozenset(
    {Code.NOT_FOUND, Code.PERMISSION_DENIED, Code.UNAUTHENTICATED, Code.UNAVAILABLE}
)
_HOST = "modular-tf-check"


class StageRoot:
    """Makes and removes the roots of one process. [one thread]

    Args:
        target: What is checked: its root is where roots are made, or else its scratch directory
            for plain paths, or else a host of its own.
    """

    def __init__(self, target: Target) -> None:
        scheme = target.scheme or ""
        self._run = f"{time.time_ns():x}-{os.getpid()}"
        self._made = 0
        self._creates = target.options.create_roots
        self._is_local = target.root is None and scheme in LOCAL_SCHEMES and bool(target.scratch)
        if self._is_local:
            # A check may have further processes make roots in the same directory.
            self._base = f"{LOCAL_SCHEMES[scheme]}{target.scratch}/{self._run}"
        else:
            self._place = (target.root or f"{scheme}://{_HOST}").rstrip("/")
            self._base = f"{self._place}/{self._run}"
        self._is_assumed = target.assumed_store is not None
        self._not_there: Blocked | None = None

    def make(self, subject: FilesystemSubject, check: Check) -> str:
        """Make an empty directory and return its URI.

        Raises:
            Blocked: That failed; where it was the first one, it fails for all.
        """
        if self._not_there is not None:
            raise self._not_there
        self._made += 1
        root = f"{self._base}/{check.id}-{self._made}"
        if not self._creates:
            return root
        if self._is_local:
            os.makedirs(_local(root))
            return root
        try:
            # Stores answer what is there already in seconds, where they answer at all.
            if self._made == 1 or not subject.create_dir(root).ok:
                answer = _make_with_parents(subject, root)
                if answer.code not in _FINE:
                    self._block(answer)
        except Unsupported:  # files need no directory, or the check fails at its first file
            if self._is_assumed and self._made == 1:
                self._try_to_write(subject, f"{root}-trial")
        return root

    def _try_to_write(self, subject: FilesystemSubject, uri: str) -> None:
        """Write a file, since there is no directory by which a place can be known."""
        with suppress(Unsupported):
            answer = subject.new_writable_file(uri)
            if (writer := answer.value) is not None:
                try:
                    if (answer := writer.append(b"trial")).ok:
                        answer = writer.close()
                finally:
                    writer.cleanup()
                subject.delete_file(uri)
            if answer.code in _NO_PLACE:
                self._block(answer)

    def _block(self, answer: Answer) -> NoReturn:
        """Block the check, and where its root is the first one all that follow."""
        blocked = Blocked(
            f"nothing can be made below {self._place}: name a place where files may be made and "
            "removed with --root URI, and its kind with --profile",
            found=code_found(answer),
        )
        if self._made == 1:
            self._not_there = blocked
        raise blocked

    def remove(self, subject: FilesystemSubject, root: str) -> None:
        """Remove a root as far as that works; what goes wrong is no finding.

        Raises:
            Breach: The plugin did harm meanwhile, which always is one.
        """
        if self._is_local:
            shutil.rmtree(_local(root), ignore_errors=True)
            return
        try:
            remove_tree(subject, root)
        except Breach:
            raise
        except (Deviation, Unsupported, Blocked):
            pass

    def close(self, subject: FilesystemSubject) -> None:
        """Remove the directory of all roots, with what is left in it."""
        if self._made and not self._is_local:
            with suppress(Deviation, Unsupported, Blocked):
                remove_tree(subject, self._base)


def _local(root: str) -> str:
    return root.removeprefix("file://")


def _make_with_parents(subject: FilesystemSubject, root: str) -> Answer:
    if subject.offers("recursively_create_dir"):
        answer = subject.recursively_create_dir(root)
        if answer.code in _FINE:
            return answer
    for uri in reversed(_levels(root)):
        answer = subject.create_dir(uri)
        if answer.code == Code.UNIMPLEMENTED:
            raise Unsupported("create_dir is UNIMPLEMENTED")
    return answer


def _levels(root: str) -> list[str]:
    """Return a URI and its parents, innermost first, up to its host."""
    levels = [root]
    while parent := dirname(levels[-1]).rstrip("/"):
        if parent == levels[-1] or parent.endswith(":"):
            break
        levels.append(parent)
    return levels
