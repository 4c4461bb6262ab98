"""The S3 filesystem of tensorflow-io."""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from modular_tf.errors import ModularTFError, NotFoundError
from modular_tf.filesystem.stat_cache import StatCache
from modular_tf.filesystem.uri import dirname
from modular_tf.filesystem.workarounds.endpoints import Server, named_server
from modular_tf.filesystem.workarounds.object_store import ObjectStore
from modular_tf.filesystem.workarounds.store import Store

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping
    from configparser import RawConfigParser

    from modular_tf.filesystem.files import FileStatistics, WritableFile

_SINGLE_REQUESTS = "S3_DISABLE_MULTI_PART_DOWNLOAD"
_OTHER_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL")
_TAIL = 1 << 16
_READABLE_FOR_S = 60.0
_MAX_WAIT_FOR_THREADS_S = 1.0


class S3(ObjectStore):
    """S3. [any thread]

    To the plugin, what is missing can be deleted, moved and listed, a directory has the size 0,
    and a rename takes along everything whose name begins like the source. The answer of a read is
    copied through a stream that grows, so that long reads are made by several requests at once.
    With S3_DISABLE_MULTI_PART_DOWNLOAD the plugin does not ask for the length before each read; it
    is unset for a plugin without the guarded functions, which would crash by a read past the end.
    """

    shares_init = True  # cleanup of one filesystem shuts the SDK down for all of the process
    stat_prefers_directories = True
    most_read = 8 << 20
    read_at_once = 4 << 20
    credential_variables = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    other_credentials = (
        "the keys are those of the profile that AWS_PROFILE names in ~/.aws, or there are none"
    )
    variables = ("S3_ENDPOINT", *credential_variables, *_OTHER_ENDPOINTS, _SINGLE_REQUESTS)
    remedies: ClassVar[Mapping[str, str]] = {
        "InvalidAccessKeyId": "the store does not know the key: correct AWS_ACCESS_KEY_ID",
        "SignatureDoesNotMatch": (
            "the secret is not that of the key: correct AWS_SECRET_ACCESS_KEY"
        ),
        "AccessDenied": "the keys may not do this there: use others, or have them allowed to",
        "ExpiredToken|InvalidToken": (
            "the session is over: get new keys and a new AWS_SESSION_TOKEN"
        ),
        "NoSuchBucket": (
            "the bucket does not exist there: create it, or check its name and S3_ENDPOINT"
        ),
        "RequestTimeTooSkewed": "the clock of this machine is off: set it",
        "AuthorizationHeaderMalformed|PermanentRedirect|IllegalLocationConstraint": (
            "the bucket lies in another region: set AWS_REGION to it"
        ),
    }

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._readable = StatCache[bool](_READABLE_FOR_S)  # directories with readable files

    @classmethod
    def prepare_environment(
        cls, environment: MutableMapping[str, str], *, guarded: bool
    ) -> list[str]:
        """Set the variable for single requests, and the endpoint that other programs use."""
        changed = []
        if guarded:
            environment.setdefault(_SINGLE_REQUESTS, "1")
        elif value := environment.pop(_SINGLE_REQUESTS, None):
            changed.append(f"{_SINGLE_REQUESTS} was unset, from {value!r}")
        if given := [environment[name] for name in _OTHER_ENDPOINTS if environment.get(name)]:
            environment.setdefault("S3_ENDPOINT", given[0])
        return changed

    @classmethod
    def unread_setting(cls, environment: Mapping[str, str]) -> str:
        """Return a sentence on an endpoint in the user's profile, whose keys the plugin reads."""
        is_unwanted = environment.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS") == "true"
        path = os.path.expanduser(environment.get("AWS_CONFIG_FILE") or "~/.aws/config")
        if environment.get("S3_ENDPOINT") or is_unwanted or not os.path.isfile(path):
            return ""
        named = filter(None, map(environment.get, ("AWS_PROFILE", "AWS_DEFAULT_PROFILE")))
        profile = next(named, "default")
        if not _has_endpoint(path, profile):
            return ""
        return (
            f"endpoint_url of the profile {profile!r} in {path} is not read by the plugin; set"
            " S3_ENDPOINT to its value"
        )

    @classmethod
    def server(cls, uri: str, environment: Mapping[str, str]) -> Server | None:  # noqa: ARG003
        """Return the server that the variables name, or the default, without a check of its port.

        With a dead endpoint every call retries for most of a minute, and then says NOT_FOUND.
        """
        variables = ("S3_ENDPOINT", *_OTHER_ENDPOINTS)
        return named_server(environment, *variables, assumes_tls=True) or Server(
            "https://s3.amazonaws.com", "S3_ENDPOINT", is_default=True
        )

    # -- NOT_FOUND may be a refusal, as is everything for a wrong key -------------------------

    def _find(self, uri: str, operation: str, *, is_root: bool) -> FileStatistics | None:
        try:
            with suppress(NotFoundError):
                return Store.stat(self, uri)
        except ModularTFError:
            if is_root:
                self.listed_names(uri)  # whose error explains the refusal
            raise
        if is_root:
            self.listed_names(uri)  # whose error says that there is no bucket
        else:
            self._confirm_missing(operation, uri)
        return None

    def _confirm_missing(self, operation: str, uri: str) -> None:
        """Return if nothing is there, or raise why the store does not report that.

        Nothing is requested twice in a directory whose files may be read.
        """
        if self._readable.get(dirname(uri)):
            return
        try:
            with Store.new_random_access_file(self, uri) as file:
                self.checked_call(operation, uri, lambda: file.read(0, 1))
        except NotFoundError as error:
            if not self.is_missing_bucket(error):
                self.listed_names(uri)
            self._note_missing(error, uri)

    def _note_missing(self, error: NotFoundError, uri: str) -> None:
        """Note that the files beside a missing one may be read; raise if there is no bucket."""
        if self.is_missing_bucket(error):
            raise error
        self._readable.put(dirname(uri), found=True, version=self._readable.version)

    def is_missing_bucket(self, error: NotFoundError) -> bool:
        return "NoSuchBucket" in error.message

    # -- reading and writing ------------------------------------------------------------------

    def _confirmed_length(self, uri: str) -> tuple[int, bytes]:
        """Confirm the length of the last look-up by one read, since `stat` is two requests.

        A read that is to go one byte past the end gets one byte less. Readers of formats that end
        with an index, such as Parquet and Zip, read the last bytes next.
        """
        found = self._found_long.get(uri)
        if found is None:
            return 0, b""
        n = min(_TAIL, found.length)
        with suppress(ModularTFError), Store.new_random_access_file(self, uri) as file:
            with self.fetch_times.measured(n):
                tail = file.read(found.length - n, n + 1)
            if len(tail) == n:
                return found.length, tail
        return 0, b""

    def _created(self, uri: str) -> WritableFile:
        """Return a writer of a new file, which the plugin creates only after an append."""
        return _with_an_append(super()._created(uri))

    def new_appendable_file(self, uri: str) -> WritableFile:
        """Open a file for writing at its end; the plugin stores all of it."""
        writer = Store.new_appendable_file(self, self._writable(uri))
        return self._remembered(_with_an_append(writer))

    # -- lifetime -----------------------------------------------------------------------------

    def _close_writers(self, failures: list[ModularTFError]) -> None:
        """Close writers, and wait until the threads of the SDK are idle.

        A cleanup must not shut the SDK down under a thread that has just sent a file.
        """
        super()._close_writers(failures)
        if not self.is_in_worker:
            wait_until_idle(_MAX_WAIT_FOR_THREADS_S)

    def after_fork_in_child(self, *, reinitialise: bool = False) -> None:
        """Start the plugin's threads again: in a forked child every call would wait for them."""
        super().after_fork_in_child(reinitialise=reinitialise or not self.is_in_worker)


def _has_endpoint(path: str, profile: str) -> bool:
    import configparser  # noqa: PLC0415  (most users have no such file)

    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read(path, encoding="utf-8")
    except (OSError, ValueError, configparser.Error):  # other programs report what is wrong
        return False
    found = _section(parser, f"profile {profile}") or _section(parser, profile)
    services = _section(parser, f"services {found.get('services', '')}")
    of_service = [line.partition("=")[0].strip() for line in services.get("s3", "").splitlines()]
    return "endpoint_url" in found or "endpoint_url" in of_service


def _section(parser: RawConfigParser, name: str) -> dict[str, str]:
    return dict(parser.items(name)) if parser.has_section(name) else {}


_TASKS = "/proc/self/task"
_PAUSE_S = 0.002  # a thread that did not run at all during the pause is waiting


def wait_until_idle(patience_s: float) -> bool:
    """Wait until each thread that Python has not started has ended or sleeps. [any thread]

    Return whether all are idle; False also where the system does not say.
    """
    end = time.monotonic() + patience_s
    try:
        before = _native_threads()
        while before and time.monotonic() < end:
            time.sleep(_PAUSE_S)
            now = _native_threads()
            if now.items() <= before.items() and all(state[0] == b"S" for state in now.values()):
                return True
            before = now
    except OSError:
        return False
    return not before


def _native_threads() -> dict[int, tuple[bytes, ...]]:
    # In a forked child, Python's main thread is the first one, and has the number of its parent's.
    known = {os.getpid(), *(thread.native_id for thread in threading.enumerate())}
    found = {number: _thread_state(number) for number in map(int, os.listdir(_TASKS))}
    return {number: state for number, state in found.items() if state and number not in known}


def _thread_state(number: int) -> tuple[bytes, ...]:
    """Return state and context switches of a thread, nothing if it has ended."""
    try:
        with open(f"{_TASKS}/{number}/status", "rb", buffering=0) as status:
            lines = dict(line.split(b":", 1) for line in status.read().splitlines())
    except (FileNotFoundError, ProcessLookupError):
        return ()
    names = (b"State", b"voluntary_ctxt_switches", b"nonvoluntary_ctxt_switches")
    return tuple(lines[name].split()[0] for name in names)


def _with_an_append(writer: WritableFile) -> WritableFile:
    """Append no bytes: the plugin stores a file only after an append."""
    try:
        writer.append(b"")
    except BaseException:
        writer.give_up()
        raise
    return writer
