"""Trust: whether plugins may be opened, by who could have changed them and by their bytes."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from fnmatch import fnmatchcase
from functools import partial
from time import time_ns
from typing import TYPE_CHECKING

from modular_tf.concurrency.computed_once import computed_once
from modular_tf.discovery.candidate import Source
from modular_tf.discovery.file_identity import (
    FileIdentity,
    SeenFile,
    boot_of,
    digest_of,
    of_same_file,
    sha256_of,
)
from modular_tf.discovery.linking.system_libraries import (
    VARIABLES,
    environment_libraries,
    is_of_system,
)
from modular_tf.discovery.trust.paths import PathJudge, Rights, trusted_writers
from modular_tf.discovery.trust.policy import TrustVerdict
from modular_tf.errors import ElfError
from modular_tf.rules import Violation
from modular_tf.rules import trust as rules
from modular_tf.rules.shortage import raise_shortage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from modular_tf.discovery.candidate import Candidate
    from modular_tf.discovery.trust.lock import Lock
    from modular_tf.discovery.trust.paths import JudgedPath
    from modular_tf.discovery.trust.policy import TrustPolicy
    from modular_tf.discovery.trust.record import Records

KnownHash = Callable[[str, FileIdentity], "str | None"]
"""Returns the SHA-256 of a file by path and identity, None where it is not known."""


class TrustJudge:
    """Decides whether candidates are trusted; results about directories are kept for one pass.

    [any thread, one at a time]

    Each method may raise `ShortageError`, if this process has too few descriptors.

    The lock file `lock` is used where the policy names none. `known_sha256` returns the hash of a
    file's bytes for its path and identity, where that is known; else it is computed where a rule
    asks for it. `writers` are those who may change files, by default the users that the policy and
    this process trust.
    """

    def __init__(
        self,
        policy: TrustPolicy,
        *,
        python_path: Iterable[str] = (),
        known_sha256: KnownHash | None = None,
    ) -> None:
        rights = Rights(trusted_writers(policy), policy.allow_writable)
        self._paths = PathJudge(rights)
        self._known_sha256 = known_sha256
        self._allow_executable_stack = policy.allow_executable_stack
        self._python_path = tuple(python_path)
        self._requires_record = policy.require_record
        self._lock: Lock | None = None
        if policy.frozen:
            from modular_tf.discovery.trust.lock import Lock  # noqa: PLC0415  (few processes)

            self._lock = Lock(policy.lock, self._paths)
        self._unchanged_by_others = TrustVerdict(
            rules.OWNER, f"nobody can change it but {rights.writers}"
        )

    def judge(self, candidate: Candidate, seen: SeenFile | None = None) -> TrustVerdict:
        """Return the verdict on a candidate's own file; it is neither run nor mapped.

        A missing file is accepted with nothing `checked`; the probe has rules for that. The file
        has to be as it was `seen` when it was probed: the verdict is on those bytes.
        """
        try:
            file = self._file_at(candidate.path)
        except (OSError, ValueError) as error:
            raise_shortage(error)
            reason = error.strerror if isinstance(error, OSError) else error
            return TrustVerdict(rules.OWNER, f"there is no file to judge: {reason}")
        verdict = self._verdict(file, candidate)
        if seen is None or seen.identity == file.identity or not verdict.accepted:
            return verdict
        try:
            if file.sha256() == seen.sha256:
                return verdict
        except OSError as error:
            raise_shortage(error)
        return TrustVerdict.of_problem(rules.file_changed(candidate.path, "probed"))

    def refusal_by_rights(self, candidate: Candidate) -> TrustVerdict | None:
        """Return the refusal of a file that untrusted users can change, None for any other.

        What cannot be found out is left to `judge`.
        """
        if candidate.source is Source.BUNDLED:
            return None
        try:
            offence = self._file_at(candidate.path).offence
        except (OSError, ValueError) as error:
            raise_shortage(error)
            return None
        return None if offence is None else TrustVerdict.of_problem(offence)

    def judge_unread(self, candidate: Candidate) -> TrustVerdict:
        """Return the verdict on a candidate that the probe rejected before its bytes were read."""
        return self.refusal_by_rights(candidate) or self._unchanged_by_others

    def judge_companions(
        self, candidate: Candidate, verdict: TrustVerdict, companions: Sequence[str]
    ) -> TrustVerdict:
        """Return the verdict on an accepted candidate with its companions, whose code runs too."""
        if not verdict.checked or not companions:
            return verdict
        plugin, checked = verdict.checked[0], list(verdict.checked)
        for path in companions:
            try:
                found = self._verdict(self._file_at(path), candidate, of=plugin.sha256)
            except OSError as error:
                return TrustVerdict.of_problem(_changed(path, error))
            if not found.accepted:
                return found
            checked += found.checked
            verdict = verdict.remark(*found.remarks)
        return verdict.on(tuple(checked))

    def judge_stacks(self, verdict: TrustVerdict, libraries: Sequence[str]) -> TrustVerdict:
        """Return the verdict on a candidate some of whose libraries ask for an executable stack."""
        for path in libraries:
            if verdict.accepted and not any(
                fnmatchcase(path, glob) for glob in self._allow_executable_stack
            ):
                message = f"{path} asks for an executable stack: its PT_GNU_STACK has the flag X"
                problem = Violation(rules.EXECUTABLE_STACK, f"{message} or is missing", path=path)
                return TrustVerdict.of_problem(problem)
        return verdict

    def judge_opened(
        self, candidate: Candidate, verdict: TrustVerdict, opened: Sequence[SeenFile]
    ) -> TrustVerdict:
        """Return the verdict on an accepted candidate with what its code opens, by its finding."""
        files = [(it.path, 0 if it.identity is None else it.identity.size) for it in opened]
        return self._judge_others(candidate, verdict, files, "which its code opens")

    def refusal_of_hook(self, value: str) -> Violation | None:
        """Return why the hook of an entry point's value must not run; None where it may."""
        return None if self._lock is None else self._lock.refusal_of_hook(value)

    def judge_opened_before(
        self, candidate: Candidate, verdict: TrustVerdict, paths: Sequence[str]
    ) -> TrustVerdict:
        """Return the verdict on an accepted candidate with what its code opened before.

        It is judged as it is now, before the candidate is tried: its code may open it again. Files
        that are gone do not count.
        """
        files = [(path, None) for path in paths if os.path.exists(path)]
        found = self._judge_others(candidate, verdict, files, "which its code opens")
        return verdict if found.accepted else found

    def judge_environment_libraries(
        self, candidate: Candidate, verdict: TrustVerdict
    ) -> TrustVerdict:
        """Return the verdict on a candidate with the libraries that the linker's variables added.

        What comes with this package is judged by them only where plugins are frozen.
        """
        if candidate.source is Source.BUNDLED and self._lock is None:
            return verdict
        brought = f"{VARIABLES} brought into this process"
        try:
            files = environment_libraries()
        except (OSError, ElfError) as error:
            raise_shortage(error)
            message = f"what {brought} cannot be found out: {error}"
            return TrustVerdict.of_problem(Violation(rules.MAPPED_AS_JUDGED, message))
        if not files:
            return verdict
        sized = [(file, None) for file in files]
        return self._judge_others(candidate, verdict, sized, f"which {brought}")

    def _judge_others(
        self,
        candidate: Candidate,
        verdict: TrustVerdict,
        files: Sequence[tuple[str, int | None]],
        how: str,
    ) -> TrustVerdict:
        """Return the verdict with more libraries: each a file, and its size if that is known."""
        if not verdict.checked or not files:
            return verdict
        checked, of = list(verdict.checked), verdict.checked[0].sha256 or ""
        for path, size in files:
            found = self.judge_mapped(path, of=of, distribution=candidate.distribution, size=size)
            if found.rule == rules.EXECUTABLE_STACK:
                return found
            if not found.accepted:
                message = f"{path}, {how}, is not to be trusted as it is: {found.message}"
                return TrustVerdict.of_problem(
                    Violation(rules.MAPPED_AS_JUDGED, message, path=path)
                )
            verdict = verdict.remark(*found.remarks)
            if not is_of_system(path):
                checked += found.checked
        return verdict.on(tuple(checked))

    def judge_mapped(
        self, path: str, *, of: str, distribution: str | None = None, size: int | None = None
    ) -> TrustVerdict:
        """Return the verdict on a library that is mapped with a plugin and is no companion.

        `of` is the hash of the plugin's library: where plugins are frozen, `path` must have been
        locked with it, unless the system keeps it. `distribution` is the normalised name of the one
        that brings the plugin, if known. With a `size` a file of another size is not read.
        """
        try:
            file = self._file_at(path)
            if file.offence is None and size not in {None, file.identity.size}:
                error = OSError(errno.ESTALE, "it changed since it was looked at", path)
                return TrustVerdict.of_problem(_changed(path, error))
            verdict = self._by_owner(file, distribution)
            if verdict.accepted and not is_of_system(path):
                # What reads libraries is imported where one is read; known plugins are not.
                from modular_tf.discovery.elf.file import wants_executable_stack  # noqa: PLC0415

                if self._lock is not None:
                    verdict = self._lock.verdict(file, of)
                if verdict.accepted and wants_executable_stack(path):
                    verdict = self.judge_stacks(verdict, (path,))
            return verdict.on((file.seen(),)) if verdict.accepted else verdict
        except ElfError as error:
            return TrustVerdict.of_problem(Violation.of_error(error))
        except OSError as error:
            return TrustVerdict.of_problem(_changed(path, error))

    def _file_at(self, path: str) -> JudgedFile:
        # Not by abspath: what `..` means depends on the links before it.
        place = self._paths.judge(path if path[:1] == "/" else os.path.join(os.getcwd(), path))
        if not stat.S_ISREG(place.status.st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", path)
        return JudgedFile(path, place, self._known_sha256)

    def _verdict(
        self, file: JudgedFile, candidate: Candidate, *, of: str | None = None
    ) -> TrustVerdict:
        """Return the verdict on a plugin's library, or on a companion of the library `of`."""
        try:
            if candidate.source is Source.BUNDLED:
                why = "it comes with this package, so who can change it can change this package"
                verdict = TrustVerdict(rules.OWNER, why)
            else:
                verdict = self._by_owner(file, candidate.distribution)
            if verdict.accepted and self._lock is not None:
                verdict = self._lock.verdict(file, of)
            return verdict.on((file.seen(),)) if verdict.accepted else verdict
        except OSError as error:
            return TrustVerdict.of_problem(_changed(file.path, error))

    def _by_owner(self, file: JudgedFile, distribution: str | None) -> TrustVerdict:
        if file.offence is not None:
            return TrustVerdict.of_problem(file.offence)
        if distribution is None and not self._requires_record:
            return self._unchanged_by_others
        return self._records.verdict(file, distribution, self._unchanged_by_others)

    @computed_once
    def _records(self) -> Records:
        from modular_tf.discovery.trust.record import Records  # noqa: PLC0415  (most need none)

        return Records(self._python_path, self._paths, required=self._requires_record)


def _changed(path: str, error: OSError) -> Violation:
    raise_shortage(error)
    message = f"{path} cannot be read as it was found: {error.strerror}"
    return Violation(rules.UNCHANGED, message, path=path)


class JudgedFile:
    """A file whose trust is checked, and its bytes, read only if a rule needs them. [one thread]"""

    def __init__(self, path: str, place: JudgedPath, known_sha256: KnownHash | None) -> None:
        self.path = path
        self.real_path = place.real_path
        self.offence = place.offence  # what an untrusted user can change on its path
        self.identity = FileIdentity.of(place.status)
        self._seen_ns = time_ns()
        self._sha256 = known_sha256(path, self.identity) if known_sha256 else None

    def seen(self) -> SeenFile:
        """Return the state to compare the mapped file with; with the hash if known or needed."""
        boot = boot_of(self.real_path, self.identity)
        seen = SeenFile(self.path, self.identity, self._sha256, self._seen_ns, boot)
        if self._sha256 is None and not seen.is_settled(self._seen_ns):
            return seen._replace(sha256=self.sha256())
        return seen

    def sha256(self) -> str:
        """Return the SHA-256 in hexadecimal digits, which costs a second for 1 GB."""
        if self._sha256 is None:
            self._sha256 = of_same_file(self.real_path, self.identity, sha256_of)
        return self._sha256

    def digest(self, algorithm: str) -> bytes:
        """Return a hash of the bytes; errors as in `sha256`."""
        if algorithm == "sha256":
            return bytes.fromhex(self.sha256())
        work_out = partial(digest_of, algorithm=algorithm)
        return bytes.fromhex(of_same_file(self.real_path, self.identity, work_out))
