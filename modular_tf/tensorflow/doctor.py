"""What works here, and what TensorFlow does with the plugins that are installed.

TensorFlow is imported in child processes (`import_trials`), and no code of a plugin runs in this
one.
"""

from __future__ import annotations

import os
import signal
import stat
import sys
import sysconfig
from dataclasses import dataclass
from enum import Enum
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

from modular_tf.discovery.candidate import Source
from modular_tf.discovery.search import discover
from modular_tf.discovery.sources.named_paths import TF_LIBRARY_PATH_VARIABLE
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.discovery.sources.tensorflow_plugins import DIRECTORY_NAME
from modular_tf.isolation.rights import rights_here
from modular_tf.service.kept.scan_cache import ScanCache
from modular_tf.service.plugin_scan import scan
from modular_tf.service.report import State
from modular_tf.tensorflow.import_trials import (
    FILESYSTEMS,
    FUNCTIONS,
    ImportTrial,
    ending_in_words,
    run_trials,
)
from modular_tf.tensorflow.schemes import AvailableScheme, StoreRow, report_schemes, report_stores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from modular_tf.service.configuration import Config
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

_PACKAGE, _LIBRARY = "tensorflow", "libtensorflow_framework.so.2"
_SERVED_KINDS = frozenset(("filesystem", "device", "kernel"))
_SERVES_NOBODY = (State.FAILED.value, State.QUARANTINED.value, State.REJECTED.value)
_REGISTER = "in Python: import modular_tf.tensorflow.auto"


class Outcome(str, Enum):
    """What TensorFlow does with a library.

    Attributes:
        LOADS: It maps it and calls its init functions, which succeed.
        IGNORED: It does not open it, or calls nothing of it.
        FAILS: An exception is raised.
        ABORTS: The process ends.
        HANGS: A call does not return in time.
        ENDS_IN_USE: It loads, and counting its devices ends the process.
        UNKNOWN: It was not tried.
    """

    LOADS = "loads"
    IGNORED = "ignored"
    FAILS = "fails"
    ABORTS = "aborts"
    HANGS = "hangs"
    ENDS_IN_USE = "ends in use"
    UNKNOWN = "unknown"

    def __str__(self) -> str:
        return self.value

    @property
    def is_bad(self) -> bool:
        """Whether something fails."""
        return self not in {Outcome.LOADS, Outcome.IGNORED, Outcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class TensorFlowInstallation:
    """The TensorFlow that `import tensorflow` imports.

    Attributes:
        folder: The package's folder.
        version: Its version; "" where the import fails.
        problem: Why the import fails without any plugin; "" where it does not.
    """

    folder: str
    version: str = ""
    problem: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it cannot be imported."""
        return bool(self.problem)


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file that `import tensorflow` opens, or would open.

    Attributes:
        path: The file.
        origin: The directory `tensorflow-plugins` or the variable that TensorFlow finds it by.
        outcome: What the import does with it.
        message: Why, in the words of TensorFlow; "" where there is nothing to say.
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
        state: What became of it here, as in `modular-tf list`.
        message: Why it does not serve here, or not all of it; "" where it does.
        in_tensorflow: What `tf.experimental.register_filesystem_plugin` does with it; None without
            a TensorFlow, of a plugin without filesystems, and of those that come with this package.
        in_tensorflow_message: Why, in the words of TensorFlow.
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
        return self.state in _SERVES_NOBODY


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What works here, and what does not.

    Attributes:
        tensorflow: The TensorFlow that is imported, None for none.
        files: The files that `import tensorflow` opens.
        plugins: The plugins that are installed.
        stores: What they read from the environment.
        schemes: The schemes that work here, and those that a user may miss.
        limits: What worker processes are restricted to, and why not; "" where they are.
    """

    tensorflow: TensorFlowInstallation | None
    files: tuple[FileRow, ...]
    plugins: tuple[PluginRow, ...]
    stores: tuple[StoreRow, ...]
    schemes: tuple[AvailableScheme, ...]
    limits: Mapping[str, str]

    @property
    def is_well(self) -> bool:
        """Whether nothing fails."""
        rows: tuple[FileRow | PluginRow | StoreRow | AvailableScheme, ...]
        rows = (*self.files, *self.plugins, *self.stores, *self.schemes)
        is_imported = self.tensorflow is None or not self.tensorflow.is_bad
        return is_imported and not any(row.is_bad for row in rows)

    @property
    def lacking(self) -> tuple[str, ...]:
        """The schemes that are served here and that TensorFlow, which is imported, lacks."""
        if self.tensorflow is None or self.tensorflow.is_bad:
            return ()
        return tuple(row.scheme for row in self.schemes if row.plugin and not row.in_tensorflow)


def diagnose(
    service: PluginService,
    paths: SearchPaths | None = None,
    *,
    on_wait: Callable[[], object] = lambda: None,
) -> Diagnosis:
    """Return what works here and what does not.

    Child processes import TensorFlow: one with all files of `tensorflow-plugins`, and where that
    fails one for each file. Another one registers each filesystem plugin. Each may take two minutes
    for TensorFlow itself, and `first_contact_timeout_s` for each plugin. What is not trusted is not
    run.

    Args:
        service: It has loaded its plugins: those whose bytes were new have been tried in a child.
        paths: Where plugins of TensorFlow are searched for; by default as this process does.
        on_wait: Called again and again while children run.

    Raises:
        ShortageError: This process has too few descriptors or too little memory now.
        UnavailableError: TensorFlow is installed, and no command runs Python here.
    """
    where = SearchPaths.of_process() if paths is None else paths
    records = [
        record
        for record in service.plugins()
        if record.path is not None and not _SERVED_KINDS.isdisjoint(record.kinds)
    ]
    found = _TensorFlow(where, service.config, on_wait)
    files, registered = found.files(records)
    return Diagnosis(
        found.installation,
        files,
        tuple(_plugin_row(record, registered, found.schemes) for record in records),
        report_stores(service.plugins()),
        report_schemes(service, found.schemes),
        rights_here(),
    )


def find_tensorflow() -> str | None:
    """Return the folder of the TensorFlow on the path of Python; None for none."""
    for location in sys.path:
        folder = os.path.join(location or os.getcwd(), _PACKAGE)
        if os.path.isfile(os.path.join(folder, _LIBRARY)):
            return folder
    return None


class _File(NamedTuple):
    """A file in a place where TensorFlow may look, or the place itself where it is no directory."""

    path: str
    origin: str
    place: str

    @property
    def is_named(self) -> bool:
        """Whether a variable names the file itself, so that nothing hides it but the variable."""
        return self.origin == TF_LIBRARY_PATH_VARIABLE and self.path == self.place

    @property
    def may_be_opened(self) -> bool:
        """Whether TensorFlow may open it: a file of a directory only by its name."""
        return self.path == self.place or ".so" in os.path.basename(self.path)


class _TensorFlow:
    """TensorFlow, as children import it."""

    def __init__(self, paths: SearchPaths, config: Config, on_wait: Callable[[], object]) -> None:
        self._folder = find_tensorflow()
        self._config = config
        self._on_wait = on_wait
        self._environment = dict(paths.environment)
        self._named = self._environment.pop(TF_LIBRARY_PATH_VARIABLE, "")
        schemes = [
            sysconfig.get_path(name, scheme)
            for scheme in sysconfig.get_scheme_names()
            for name in ("purelib", "platlib")
        ]
        sites = dict.fromkeys((*paths.site_directories, *map(os.path.abspath, schemes)))
        self._places = [os.path.join(site, DIRECTORY_NAME) for site in sites]
        self._trials: dict[frozenset[_File], ImportTrial] = {}
        self.installation = TensorFlowInstallation(self._folder) if self._folder else None
        self.schemes: tuple[str, ...] = ()

    def files(
        self, records: Iterable[PluginRecord]
    ) -> tuple[tuple[FileRow, ...], dict[str, tuple[Outcome, str]]]:
        """Return what the import does with each file, and what registering each plugin does."""
        files = list(self._found_files())
        if self._folder is None:
            why = "no TensorFlow is installed"
            return tuple(_file_row(file, Outcome.IGNORED, why) for file in files), {}
        plugins = [
            record.path
            for record in records
            if record.path
            and "filesystem" in record.kinds
            and record.source != Source.BUNDLED.value
        ]
        refused = self._refused({file.path for file in files}.union(plugins))
        tried = [file for file in files if file.may_be_opened and file.path not in refused]
        trusted = [path for path in plugins if path not in refused]
        bare = self._trial((), register=trusted)
        self._run([bare, *([self._trial(tried)] if tried else [])])
        self.schemes = bare.schemes
        problem = "" if bare.is_imported else bare.ending
        self.installation = TensorFlowInstallation(self._folder, bare.version, problem)
        if problem:
            why = "TensorFlow itself cannot be imported"
            rows = (_file_row(file, Outcome.UNKNOWN, why) for file in files)
            return tuple(rows), dict.fromkeys(plugins, (Outcome.UNKNOWN, why))
        tried = [file for file in tried if self._is_searched(file, bare)]
        outcomes = self._outcomes(tried)
        for file in files:
            if file.path in refused:
                outcomes[file] = Outcome.UNKNOWN, f"it was not tried: {refused[file.path]}"
            elif not self._is_searched(file, bare):
                outcomes[file] = Outcome.IGNORED, f"TensorFlow in {self._folder} does not look here"
        no_name = Outcome.IGNORED, "its name does not end in .so, or .so and a version"
        return (
            tuple(_file_row(file, *outcomes.get(file, no_name)) for file in files),
            {path: _registered(path, bare, refused) for path in plugins},
        )

    def _is_searched(self, file: _File, bare: ImportTrial) -> bool:
        return file.origin == TF_LIBRARY_PATH_VARIABLE or file.place in bare.searched

    def _found_files(self) -> Iterable[_File]:
        for place in self._places:
            yield from _files_of(place, place)
        if self._named:
            found = list(_files_of(self._named, TF_LIBRARY_PATH_VARIABLE))
            yield from found or [_File(self._named, TF_LIBRARY_PATH_VARIABLE, self._named)]

    def _refused(self, paths: Iterable[str]) -> dict[str, str]:
        """Return why files are not tried: those that are not trusted, or that may be waited for."""
        known = {path: os.path.abspath(path) for path in paths if os.path.exists(path)}
        why = {}
        for path in known:
            mode = os.stat(path).st_mode
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                why[path] = "it is a FIFO, a socket or a device"
        named = tuple(known[path] for path in known if os.path.isfile(path))
        if not named:
            return why
        wanted = SearchPaths(arguments=named, sources=frozenset((Source.ARGUMENT,)))
        for plugin in scan(discover(wanted).candidates, self._config, ScanCache.of_process()):
            if plugin.trust.refused is not None:
                same = {plugin.path, *(twin.path for twin in plugin.candidate.twins)}
                refused = plugin.trust.refused.message
                why.update({path: refused for path in known if known[path] in same})
        return why

    def _trial(self, files: Iterable[_File], register: Sequence[str] = ()) -> ImportTrial:
        """Return the trial of some files together, the same one each time."""
        key = frozenset(files)
        if key not in self._trials:
            environment, places = dict(self._environment), list(self._places)
            if any(file.origin == TF_LIBRARY_PATH_VARIABLE for file in key):
                environment[TF_LIBRARY_PATH_VARIABLE] = self._named
                if not any(file.is_named for file in key):
                    places.append(os.path.abspath(self._named))
            self._trials[key] = ImportTrial(
                [file.path for file in key],
                environment,
                places=places,
                shown=[file.path for file in key if not file.is_named],
                register=register,
                limit_s=self._config.first_contact_timeout_s,
            )
        return self._trials[key]

    def _run(self, trials: Iterable[ImportTrial]) -> None:
        new = [trial for trial in trials if not trial.has_started]
        run_trials(new, sys.path, self._on_wait)

    def _outcomes(self, files: Sequence[_File]) -> dict[_File, tuple[Outcome, str]]:
        """Return what the import does with each file, and why."""
        if not files:
            return {}
        together = self._trial(files)
        self._run([together])
        if together.was_used:
            return {file: _outcome(file, together) for file in files}
        self._run([self._trial([file]) for file in files])
        outcomes = {file: _outcome(file, self._trial([file])) for file in files}
        good = [file for file in files if self._trial([file]).was_used]
        self._run([self._trial(good)])
        if not self._trial(good).was_used:  # though each of them loads alone
            beside: list[_File] = []
            for file in good:
                trial = self._trial([*beside, file])
                self._run([trial])
                if trial.was_used:
                    beside.append(file)
                else:
                    others = ", ".join(dict.fromkeys(other.path for other in beside))
                    outcome, message = _outcome(file, trial)
                    outcomes[file] = outcome, f"beside {others}: {message}"
        return outcomes


def _files_of(place: str, origin: str) -> Iterable[_File]:
    if not os.path.exists(place):
        return
    try:
        names = sorted(os.listdir(place))
    except OSError:  # it is a file, or cannot be read
        yield _File(place, origin, place)
        return
    for name in names:
        yield _File(os.path.join(place, name), origin, place)


def _outcome(file: _File, trial: ImportTrial) -> tuple[Outcome, str]:
    """Return what an import did with a file, or what ended the import."""
    if trial.was_used:
        functions = trial.mapped.get(os.path.abspath(file.path))
        if functions is None:
            return Outcome.IGNORED, "its name does not end in .so, or .so and a version"
        if not set(FUNCTIONS).isdisjoint(functions):
            return Outcome.LOADS, ""
        if FILESYSTEMS in functions:
            auto = "`import modular_tf.tensorflow.auto` registers them"
            return Outcome.IGNORED, f"it brings filesystems only; {auto}"
        return Outcome.IGNORED, "it is no plugin: its constructors run, and nothing else"
    if trial.is_late:
        outcome = Outcome.HANGS
    elif trial.failure:
        outcome = Outcome.FAILS
    else:
        outcome = Outcome.ENDS_IN_USE if trial.is_imported else Outcome.ABORTS
    return outcome, trial.ending


def _file_row(file: _File, outcome: Outcome, message: str) -> FileRow:
    if file.origin == TF_LIBRARY_PATH_VARIABLE:
        away = f"unset {file.origin}"
    else:
        is_place = file.path == file.place
        target = f"{file.path}.away" if is_place else os.path.dirname(file.place)
        away = f"mv {quote(file.path)} {quote(target)}"
    remedy = away if outcome.is_bad else ""
    if outcome is Outcome.UNKNOWN:
        remedy = f"if the import ends: {away}"
    return FileRow(file.path, file.origin, outcome, message, remedy)


def _registered(path: str, bare: ImportTrial, refused: Mapping[str, str]) -> tuple[Outcome, str]:
    """Return what came of registering a plugin."""
    if path in refused:
        return Outcome.UNKNOWN, f"it was not tried: {refused[path]}"
    if path not in bare.registered:
        return Outcome.UNKNOWN, f"it was not tried: {bare.ending}"
    status, message, said = bare.registered[path]
    if status == -signal.SIGALRM:
        return Outcome.HANGS, "it gave no answer in time"
    if status != 0:
        return Outcome.ABORTS, ending_in_words(status, said)
    return (Outcome.FAILS if message else Outcome.LOADS), message


def _plugin_row(
    record: PluginRecord,
    registered: Mapping[str, tuple[Outcome, str]],
    taken: Sequence[str],
) -> PluginRow:
    outcome, message = registered.get(record.path or "", (None, ""))
    remedy = ""
    if record.reason is not None and record.state.value in _SERVES_NOBODY:
        remedy = record.reason.remedy or ""
    elif outcome not in {None, Outcome.LOADS} and record.schemes:
        remedy = _REGISTER
        if (scheme := next((name for name in record.schemes if name in taken), None)) is not None:
            call = f'modular_tf.tensorflow.register({{"{scheme}2": "{scheme}"}})'
            remedy = f"in Python: import modular_tf.tensorflow; {call}"
    return PluginRow(
        plugin=record.name,
        path=record.path or "",
        kinds=record.kinds,
        schemes=record.schemes,
        device_types=record.device_types,
        kernels=record.kernels,
        state=record.state.value,
        message="" if record.reason is None else record.reason.message,
        in_tensorflow=outcome,
        in_tensorflow_message=message,
        remedy=remedy,
    )
