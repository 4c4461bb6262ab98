"""What `import tensorflow` does with each file that it opens, told without importing it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from shlex import quote
from typing import TYPE_CHECKING

from modular_tf.discovery.elf import ElfFile, SymbolName
from modular_tf.discovery.sources.named_paths import TF_LIBRARY_PATH_VARIABLE
from modular_tf.errors import ElfError
from modular_tf.tensorflow.import_files import imported_files
from modular_tf.tensorflow.installation import releases
from modular_tf.tensorflow.library_trials import Trial, try_libraries
from modular_tf.tensorflow.link_prediction import why_not_linked
from modular_tf.tensorflow.loading_outcome import Outcome, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.discovery.linking.link_scope import ProcessScope
    from modular_tf.discovery.sources.search_paths import SearchPaths
    from modular_tf.first_contact.finding import PlatformOffer
    from modular_tf.service.configuration import Config
    from modular_tf.tensorflow.import_files import ImportedFile
    from modular_tf.tensorflow.installation import TensorFlowInstallation

_TRIED = ("device", "kernel")
_UNTRIED_INITS = ("TF_InitGraph", "TF_InitProfiler", "TFNPD_InitPlugin")
_FILESYSTEMS = SymbolName("TF_InitPlugin")
_NOT_TRIED = Trial(None, "it was not found again")


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file that `import tensorflow` opens, or would open.

    Attributes:
        path: The file.
        origin: The directory `tensorflow-plugins` or the variable that TensorFlow finds it by.
        outcome: What the import does with it.
        message: Why, in the words of the linker, of the plugin or of the rule; "" where there is
            nothing to say.
        remedy: What to type or to move; "" where nothing is to be done.
    """

    path: str
    origin: str
    outcome: Outcome
    message: str = ""
    remedy: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether the import ends with it, or the first use of its devices."""
        return self.outcome.is_bad


def predict_import(
    tensorflow: TensorFlowInstallation | None,
    paths: SearchPaths,
    process: ProcessScope,
    config: Config,
) -> tuple[FileRow, ...]:
    """Return one row for each file that `import tensorflow` opens, in the order of directories.

    Libraries are tried in child processes.

    Args:
        tensorflow: The installation; None where there is none.
        paths: Where TensorFlow's plugins are looked for.
        process: What this process and this system offer.
        config: What the user decided about trust and trials.

    Raises:
        ShortageError: This process has too few descriptors or too little memory now.
    """
    files = list(imported_files(tensorflow, paths))
    rows = [_row_before_trial(file, tensorflow, process) for file in files]
    opened = [file.path for file, row in zip(files, rows, strict=True) if row is None]
    trials = try_libraries(opened, _TRIED, config)
    platforms = _Platforms(tensorflow)
    return tuple(
        row or platforms.checked(_row_of_trial(file, trials), _platform_of(file, trials))
        for file, row in zip(files, rows, strict=True)
    )


def _row_before_trial(
    file: ImportedFile, tensorflow: TensorFlowInstallation | None, process: ProcessScope
) -> FileRow | None:
    """Return what the file's name and bytes tell; None where it has to be tried."""
    if file.ignored or tensorflow is None:
        return _row(file, Outcome.IGNORED, file.ignored)
    if file.failure:
        return _row(file, Outcome.FAILS, file.failure)
    lost = why_not_linked(file.path, tensorflow, process)
    if lost is None:
        return None
    return _row(file, Outcome.ABORTS if lost.ends_process else Outcome.FAILS, lost.message)


def _row_of_trial(file: ImportedFile, trials: dict[str, Trial]) -> FileRow:
    trial = _trial_of(file, trials)
    inits = _init_functions(file.path)
    if trial.finding is None:
        return _row(file, Outcome.UNKNOWN, f"it was not tried: {trial.why_untried}")
    outcome, message = outcome_of(trial.finding, _loads_or_is_ignored(inits))
    untried = [name for name in _UNTRIED_INITS if name in inits]
    if outcome is Outcome.LOADS and untried:
        untold = "nothing is known of " + " and ".join(untried)
        return _row(file, Outcome.UNKNOWN, f"what was tried did no harm; {untold}")
    if outcome is Outcome.LOADS:
        message = ""
    elif outcome is Outcome.IGNORED:
        message = message or _why_ignored(file.path)
    return _row(file, outcome, message)


def _row(file: ImportedFile, outcome: Outcome, message: str) -> FileRow:
    remedy = _remedy(file.path, file.origin) if outcome.is_bad else ""
    if outcome is Outcome.UNKNOWN:
        remedy = f"if the import ends: {_remedy(file.path, file.origin)}"
    return FileRow(file.path, file.origin, outcome, message, remedy)


def _remedy(path: str, origin: str) -> str:
    """Return what to type to take a file out of TensorFlow's way."""
    if origin == TF_LIBRARY_PATH_VARIABLE:
        return f"unset {origin}"
    target = f"{path}.away" if path == origin else os.path.dirname(origin)
    return f"mv {quote(path)} {quote(target)}"


def _trial_of(file: ImportedFile, trials: dict[str, Trial]) -> Trial:
    return trials.get(os.path.abspath(file.path), _NOT_TRIED)


def _platform_of(file: ImportedFile, trials: dict[str, Trial]) -> PlatformOffer | None:
    finding = _trial_of(file, trials).finding
    return None if finding is None or finding.offer is None else finding.offer.platform


def _loads_or_is_ignored(inits: Iterable[str]) -> Outcome:
    return Outcome.LOADS if any(inits) else Outcome.IGNORED


def _init_functions(path: str) -> tuple[str, ...]:
    """Return which of the functions that the import calls a library exports."""
    try:
        with ElfFile(path) as elf:
            names = releases().init_functions
            return tuple(name for name in names if elf.find(SymbolName(name)) is not None)
    except ElfError:
        return ()


def _why_ignored(path: str) -> str:
    try:
        with ElfFile(path) as elf:
            is_filesystem = elf.find(_FILESYSTEMS) is not None
    except ElfError:
        is_filesystem = False
    if is_filesystem:
        return "it brings filesystems only; `import modular_tf.tensorflow.auto` registers them"
    return "it is no plugin: its constructors run, and nothing else"


class _Platforms:
    """The platforms that the files before have registered: TensorFlow aborts at a second one.

    Args:
        tensorflow: Which one.
    """

    def __init__(self, tensorflow: TensorFlowInstallation | None) -> None:
        self._tensorflow = tensorflow
        self._owner_of_name = dict.fromkeys(releases().platforms, "TensorFlow itself")
        self._owner_of_type: dict[str, str] = {}

    def checked(self, row: FileRow, platform: PlatformOffer | None) -> FileRow:
        """Return the row, of a file that aborts the import where its platform is taken."""
        if platform is None or row.outcome is not Outcome.LOADS:
            return row
        if not platform.has_timers and self._tensorflow and self._tensorflow.demands_timers:
            return _aborts(row, "it has no timers, which this TensorFlow demands")
        name, kind = platform.platform.upper(), platform.device_type
        if (owner := self._owner_of_name.get(name)) is not None:
            return _aborts(row, f"platform {platform.platform} is registered already, by {owner}")
        if (owner := self._owner_of_type.get(kind)) is not None:
            return _aborts(row, f"device type {kind} is registered already, by {owner}")
        self._owner_of_name[name] = self._owner_of_type[kind] = row.path
        return row


def _aborts(row: FileRow, message: str) -> FileRow:
    remedy = _remedy(row.path, row.origin)
    return replace(row, outcome=Outcome.ABORTS, message=message, remedy=remedy)
