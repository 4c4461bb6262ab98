"""A check whether plugins are in the lock file, for frozen plugins."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from modular_tf.discovery.trust.lock_file import LockFile
from modular_tf.discovery.trust.verdict import TrustVerdict
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from modular_tf.discovery.trust.judged_file import JudgedFile
    from modular_tf.discovery.trust.paths import PathJudge

__all__ = ["Lock"]


class Lock:
    """The lock file, read at its first use.

    Args:
        path: Its path; None for none, which accepts nothing.
        paths: Checks the lock file itself: one that untrusted users can change is not used.
    """

    def __init__(self, path: str | None, paths: PathJudge) -> None:
        self._path = path
        self._paths = paths
        self._read: LockFile | Violation | None = None

    def verdict(self, file: JudgedFile, of: str | None = None) -> TrustVerdict:
        """Return the verdict on a plugin's library, or on a companion of the library with a hash.

        Raises:
            OSError: The file's bytes cannot be read.
        """
        if self._read is None:
            self._read = self._load()
        if isinstance(self._read, Violation):
            return TrustVerdict.of_problem(self._read)
        plugin = self._read.plugins.get(of or file.sha256())
        if plugin is None:
            return self._refusal(file, "")
        if of is None:
            return self._accept(plugin.name)
        if any(companion.sha256 == file.sha256() for companion in plugin.companions):
            return self._accept(f"a companion of {plugin.name}")
        return self._refusal(file, f" as a companion of {plugin.name!r}")

    def refusal_of_hook(self, value: str) -> Violation | None:
        """Return why the hook with an entry point must not run; None if its code is locked."""
        from modular_tf.discovery.trust.hook_code import code_of_hook  # noqa: PLC0415  (few have hooks)

        if self._read is None:
            self._read = self._load()
        if isinstance(self._read, Violation):
            return self._read
        try:
            code = code_of_hook(value)
        except OSError as error:
            raise_shortage(error)
            return Violation(rules.LOCKED, f"the code of {value} cannot be compared: {error}")
        if any((value, code.sha256) == (it.value, it.code.sha256) for it in self._read.hooks):
            return None
        message = f"{self._path} does not have {value} with this code, whose sha256 is"
        return Violation(rules.LOCKED, f"{message} {code.sha256}")

    def _accept(self, name: str) -> TrustVerdict:
        return TrustVerdict(rules.LOCKED, f"{self._path} has its hash, as {name}")

    def _refusal(self, file: JudgedFile, role: str) -> TrustVerdict:
        message = f"{self._path} does not have {file.path}{role}, whose sha256 is {file.sha256()}"
        return TrustVerdict.of_problem(Violation(rules.LOCKED, message, path=file.path))

    def _load(self) -> LockFile | Violation:
        path = self._path
        if path is None:
            return Violation(rules.LOCK_USABLE, "plugins are frozen, and no lock file is named")
        try:
            offence = self._paths.judge(os.path.abspath(path)).offence
            if offence is not None:
                what = f"the lock file {path} vouches for nothing: {offence.message}"
                return Violation(rules.LOCK_USABLE, what, remedy=offence.remedy, path=path)
            with open(path, "rb") as stream:
                return LockFile.parse(stream.read())
        except OSError as error:
            raise_shortage(error)
            what = f"the lock file {path} cannot be read: {error.strerror}"
        except ValueError as error:
            what = f"{path} is no lock file: {error}"
        return Violation(rules.LOCK_USABLE, what, path=path)
