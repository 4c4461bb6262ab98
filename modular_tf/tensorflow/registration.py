"""Registration of a service's schemes in TensorFlow."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from modular_tf.concurrency.fork_lock import ForkLock
from modular_tf.errors import AlreadyExistsError, NotFoundError
from modular_tf.events import EventLog
from modular_tf.service.configured_filesystems import missed_schemes
from modular_tf.service.default import default_service

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.filesystem.filesystem import Filesystem
    from modular_tf.service.service import PluginService

SWITCH = "MODULAR_TF_TENSORFLOW"
"""The variable that turns registration by itself off, with the value 0."""

_log = EventLog("tensorflow")
_lock = ForkLock()
_has_warned = False


class Outcome(str, Enum):
    """What can come of a registration."""

    SERVED = "served"
    REBOUND = "rebound"
    TAKEN = "taken"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class SchemeRow:
    """A scheme, and what came of its registration.

    Attributes:
        scheme: Its name in TensorFlow.
        serves: The scheme of the service that is behind it.
        plugin: Who serves that.
        outcome: `served` from now on; `rebound`: it was ours before and is served by this service
            now; `taken` by TensorFlow or another library; `refused` by TensorFlow.
        message: Why not; empty where it is served.
        remedy: What to do about it; empty where it is served.
    """

    scheme: str
    serves: str
    plugin: str
    outcome: Outcome
    message: str = ""
    remedy: str = ""

    @property
    def is_served(self) -> bool:
        """Whether TensorFlow's calls come here."""
        return self.outcome in {Outcome.SERVED, Outcome.REBOUND}


@dataclass(frozen=True, slots=True)
class Registration:
    """One row per requested scheme, in their order.

    Attributes:
        rows: The rows.
        tensorflow: The version of TensorFlow.
    """

    rows: tuple[SchemeRow, ...]
    tensorflow: str

    @property
    def schemes(self) -> tuple[str, ...]:
        """The names in TensorFlow that are served."""
        return tuple(row.scheme for row in self.rows if row.is_served)

    def __str__(self) -> str:
        lines = [
            f"{row.scheme}: {row.outcome.value}, {row.serves} of {row.plugin}"
            if row.is_served
            else f"{row.scheme}: {row.outcome.value}: {row.message}; {row.remedy}"
            for row in self.rows
        ]
        return "\n".join([f"TensorFlow {self.tensorflow}", *lines])


@dataclass(frozen=True, slots=True)
class Binding:
    """The service behind a scheme of TensorFlow, and the scheme's name there.

    The filesystem is requested at each call, so a plugin that is replaced while the process runs,
    and a scheme that is registered again, are found by themselves.
    """

    service: PluginService
    scheme: str  # its name in the service
    name: str  # its name in TensorFlow

    @property
    def filesystem(self) -> Filesystem:
        """The filesystem that serves the scheme now."""
        return self.service.filesystem(self.scheme)

    def ours(self, uri: str) -> str:
        """Return a URI of TensorFlow's in the service's terms."""
        return uri if self.name == self.scheme else self.scheme + uri.removeprefix(self.name)

    def theirs(self, uri: str) -> str:
        """Return a URI of the service in TensorFlow's terms."""
        return uri if self.name == self.scheme else self.name + uri.removeprefix(self.scheme)


BINDINGS: dict[str, Binding] = {}
"""By a scheme's name in TensorFlow, the service behind it."""


def register(
    schemes: Iterable[str] | Mapping[str, str] | None = None,
    *,
    service: PluginService | None = None,
) -> Registration:
    """Register the schemes of a service in TensorFlow. [any thread]

    TensorFlow is imported now; it may have been imported before, as may the plugins have been
    loaded. A plugin's library is mapped at the first call of its scheme. Schemes that TensorFlow or
    another library serves stay as they are: TensorFlow releases no scheme. What was registered
    here before is served by this service from now on.

    Args:
        schemes: Which schemes; or by TensorFlow's name for it, which scheme of the service. By
            default all that TensorFlow lacks.
        service: Whose schemes; by default those of the default service.

    Returns:
        One row per scheme. Where none of all schemes is served, a warning says once what brings
        some.

    Raises:
        NotFoundError: A scheme was named that nobody serves.
        AlreadyExistsError: A scheme was named that TensorFlow or another library has; the others
            are registered.
        ImportError: TensorFlow is not installed.
        TypeError: One text was given instead of several schemes.
    """
    global _has_warned  # noqa: PLW0603  (it warns once in a process)
    import tensorflow as tf  # type: ignore[import-untyped]  # noqa: PLC0415  (takes seconds)

    from modular_tf.tensorflow.bridge import connect  # noqa: PLC0415  (maps the core)

    serving = default_service() if service is None else service
    wanted = _wanted(serving, schemes)
    with _lock:
        connect(tf)
        rows = [_register_one(tf, binding) for binding in wanted]
        warns = schemes is None and not any(row.is_served for row in rows) and not _has_warned
        _has_warned |= warns
    if warns:
        steps = [f"{scheme}: {serving.next_step(scheme)}" for scheme in missed_schemes()]
        nothing = "modular_tf serves TensorFlow no scheme: no plugin and no client of fsspec was"
        text = "; ".join([f"{nothing} found", *steps, "`modular-tf doctor` shows more"])
        warnings.warn(text, stacklevel=2)
    for row in rows:
        if not row.is_served:
            _log.info("tensorflow.scheme_left", scheme=row.scheme, message=row.message)
            if schemes is not None:
                raise AlreadyExistsError(f"{row.message}; {row.remedy}")
    return Registration(tuple(rows), tf.__version__)


def register_filesystem(
    scheme: str, filesystem: Any, *, service: PluginService | None = None
) -> Registration:
    """Register a filesystem of Python for a scheme in TensorFlow. [any thread]

    Args:
        scheme: The scheme.
        filesystem: As for `PluginService.register_filesystem`: any filesystem of fsspec or
            `pyarrow.fs`, a store of obstore, or an object with some of the operations of
            `Filesystem`.
        service: Where it is registered too; by default the default service.

    Raises:
        AlreadyExistsError: The scheme is taken, in the service or in TensorFlow.
        InvalidArgumentError: No URI could name it.
        TypeError: It is none of these.
    """
    serving = default_service() if service is None else service
    undo = serving.register_filesystem(scheme, filesystem)
    try:
        return register([scheme], service=serving)
    except BaseException:
        undo()
        raise


def _wanted(
    service: PluginService, schemes: Iterable[str] | Mapping[str, str] | None
) -> list[Binding]:
    if isinstance(schemes, str):
        raise TypeError(f"expected several schemes, found {schemes!r}: write [{schemes!r}]")
    if schemes is None:
        served = service.schemes()
        return [Binding(service, name, name) for name in served if name not in {"", "file"}]
    given = dict(schemes) if isinstance(schemes, Mapping) else {name: name for name in schemes}
    missing = sorted(scheme for scheme in set(given.values()) if service.owner(scheme) is None)
    if missing:
        steps = "".join(f"; {step}" for step in map(service.next_step, missing) if step)
        text = f"no plugin serves {missing}; schemes served: {sorted(service.schemes())}{steps}"
        raise NotFoundError(text)
    return [Binding(service, scheme, name) for name, scheme in given.items()]


def _register_one(tf: Any, binding: Binding) -> SchemeRow:
    """Register one scheme, or put the service behind it where it is ours."""
    from modular_tf.tensorflow.bridge import offer  # noqa: PLC0415  (maps the core)

    name, plugin = binding.name, binding.service.owner(binding.scheme) or ""

    def row(outcome: Outcome, message: str = "", remedy: str = "") -> SchemeRow:
        return SchemeRow(name, binding.scheme, plugin, outcome, message, remedy)

    is_in_tensorflow = name in tf.io.gfile.get_registered_schemes()
    if is_in_tensorflow and name in BINDINGS:
        BINDINGS[name] = binding
        return row(Outcome.REBOUND)
    if is_in_tensorflow:
        message = f"{name!r} is served in TensorFlow {tf.__version__} by another library"
        return row(Outcome.TAKEN, message, _other_name(binding))
    try:
        offer(tf, binding)
    except tf.errors.OpError as error:
        return row(Outcome.REFUSED, f"TensorFlow refused {name!r}: {error}", _other_name(binding))
    return row(Outcome.SERVED)


def _other_name(binding: Binding) -> str:
    other = f"{binding.name}2"
    return f'TensorFlow releases no scheme: register({{"{other}": "{binding.scheme}"}})'
