"""What became of each plugin here, and what comes of registering it in TensorFlow itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from modular_tf.discovery.candidate import Source
from modular_tf.service.report import State
from modular_tf.tensorflow.installation import releases
from modular_tf.tensorflow.library_trials import Trial, try_libraries
from modular_tf.tensorflow.link_prediction import why_not_linked
from modular_tf.tensorflow.loading_outcome import Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.discovery.linking.link_scope import ProcessScope
    from modular_tf.service.configuration import Config
    from modular_tf.service.report import PluginRecord
    from modular_tf.tensorflow.installation import TensorFlowInstallation

_SERVED_KINDS = frozenset(("filesystem", "device", "kernel"))
_SERVES_NOBODY = (State.FAILED, State.QUARANTINED, State.REJECTED)
_REGISTER = "in Python: import modular_tf.tensorflow.auto"
_NOT_TRIED = Trial(None, "it was not found again")


@dataclass(frozen=True, slots=True)
class PluginRow:
    """A plugin that is installed.

    Attributes:
        plugin: Its name.
        path: Its file.
        kinds: What it brings: `filesystem`, `device`, `kernel` and others.
        schemes: The schemes that it serves here.
        device_types: The types of devices that it serves here.
        kernels: How many kernels it brings.
        state: What became of it here, as `modular-tf list` says it.
        message: Why it does not serve here, or not all of it; "" where it does.
        in_tensorflow: What `tf.experimental.register_filesystem_plugin` does with it; None without
            a TensorFlow, of a plugin without filesystems, and of those that come with this package.
        in_tensorflow_message: Why, in the words of the linker, of TensorFlow or of the rule.
        remedy: What to type or to do; "" where nothing is to be done.
    """

    plugin: str
    path: str
    kinds: tuple[str, ...]
    schemes: tuple[str, ...]
    device_types: tuple[str, ...]
    kernels: int
    state: str
    message: str = ""
    in_tensorflow: Outcome | None = None
    in_tensorflow_message: str = ""
    remedy: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it serves nobody here."""
        return self.state in {state.value for state in _SERVES_NOBODY}


def predict_plugins(
    records: Iterable[PluginRecord],
    tensorflow: TensorFlowInstallation | None,
    process: ProcessScope,
    config: Config,
) -> tuple[PluginRow, ...]:
    """Return one row for each plugin, in order of precedence.

    Args:
        records: What became of the plugins here.
        tensorflow: The installation; None where there is none.
        process: What this process and this system offer.
        config: What the user decided about trust and trials.

    Raises:
        ShortageError: This process has too few descriptors or too little memory now.
    """
    shown = [record for record in records if not _SERVED_KINDS.isdisjoint(record.kinds)]
    lost: dict[str, str] = {}
    tried: dict[str, Trial] = {}
    if tensorflow is not None:
        paths = [record.path for record in shown if record.path and _is_for_tensorflow(record)]
        links = {path: why_not_linked(path, tensorflow, process) for path in paths}
        lost = {path: failure.message for path, failure in links.items() if failure is not None}
        linked = [path for path in paths if path not in lost]
        tried = try_libraries(linked, ("filesystem",), config)
    return tuple(_row(record, lost, tried) for record in shown if record.path is not None)


def _is_for_tensorflow(record: PluginRecord) -> bool:
    """Return whether somebody may want TensorFlow to load it: not what comes with this package."""
    return "filesystem" in record.kinds and record.source != Source.BUNDLED.value


def _row(record: PluginRecord, lost: dict[str, str], tried: dict[str, Trial]) -> PluginRow:
    path = record.path or ""
    outcome: Outcome | None = None
    message = ""
    if path in lost:
        outcome, message = Outcome.FAILS, lost[path]
    elif path in tried:
        outcome, message = _of_trial(tried[path])
    reason = record.reason
    return PluginRow(
        plugin=record.name,
        path=path,
        kinds=record.kinds,
        schemes=record.schemes,
        device_types=record.device_types,
        kernels=record.kernels,
        state=record.state.value,
        message="" if reason is None else reason.message,
        in_tensorflow=outcome,
        in_tensorflow_message=message,
        remedy=_remedy(record, outcome),
    )


def _of_trial(trial: Trial) -> tuple[Outcome, str]:
    if trial.finding is None:
        return Outcome.UNKNOWN, f"it was not tried: {trial.why_untried}"
    outcome, message = outcome_of(trial.finding, Outcome.LOADS)
    offer = trial.finding.offer
    taken = [] if offer is None else [each for each in offer.schemes if each in releases().schemes]
    if outcome is Outcome.LOADS and taken:
        return Outcome.FAILS, f"File system for {taken[0]} already registered"
    return outcome, message


def _remedy(record: PluginRecord, outcome: Outcome | None) -> str:
    if record.reason is not None and record.state in _SERVES_NOBODY:
        return record.reason.remedy or ""
    if outcome is None or outcome is Outcome.LOADS or not record.schemes:
        return ""
    taken = next((scheme for scheme in record.schemes if scheme in releases().schemes), None)
    if taken is None:
        return _REGISTER
    call = f'modular_tf.tensorflow.register({{"{taken}2": "{taken}"}})'
    return f"in Python: import modular_tf.tensorflow; {call}"
