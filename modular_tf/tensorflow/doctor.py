"""What works here, and what TensorFlow does with the plugins that are installed.

A plugin may end a process that maps it, or hang it. So child processes import TensorFlow, each with
some of its plugins (`import_child`), and no code of a plugin runs in this one. Of stores it reports
which variables plugins read and whether the servers that these name answer; of schemes who serves
them, and what brings those that a user may miss.
"""

from __future__ import annotations

import json
import math
import os
import re
import select
import signal
import stat
import subprocess
import sys
import sysconfig
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.concurrency.crew import Crew, results_at_once
from modular_tf.discovery.candidate import Source
from modular_tf.discovery.elf import ElfFile
from modular_tf.discovery.search import TENSORFLOW_DIRECTORY, TF_LIBRARY_PATH_VARIABLE, discover
from modular_tf.discovery.sources.search_paths import SearchPaths
from modular_tf.errors import ElfError, UnavailableError
from modular_tf.filesystem.workarounds import store_class
from modular_tf.filesystem.workarounds.endpoints import Endpoints
from modular_tf.filesystem.workarounds.store import Store
from modular_tf.isolation.rights import rights_here
from modular_tf.loading.published import storage_options, storage_options_of
from modular_tf.native.preloading import preloaded, with_preloaded
from modular_tf.native.runtime_library import TENSORFLOW_SONAME
from modular_tf.processes.ending import ChildEnding, plain_lines
from modular_tf.processes.interpreter import find_interpreter
from modular_tf.rules.shortage import raise_shortage
from modular_tf.service.configured_filesystems import missed_schemes
from modular_tf.service.plugins import scan
from modular_tf.service.report import State
from modular_tf.service.storage.scan_cache import ScanCache

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from modular_tf.service.configuration import Config
    from modular_tf.service.report import PluginRecord
    from modular_tf.service.service import PluginService

_SERVED_KINDS = frozenset(("filesystem", "device", "kernel"))
_SERVES_NOBODY = (State.FAILED.value, State.QUARANTINED.value, State.REJECTED.value)
# What `import tensorflow` calls in the libraries that it opens, and what registering one calls.
_FUNCTIONS = (
    *("SE_InitPlugin", "TF_InitGraph", "TF_InitKernel", "TF_InitProfiler"),
    "TFNPD_InitPlugin",
)
_FILESYSTEMS = "TF_InitPlugin"
_NO_LIBRARY_NAME = "its name does not end in .so, or .so and a version"

_IMPORT_LIMIT_S = 120.0  # until TensorFlow searches for plugins
_GRACE_S = 2.0  # for the fork of a plugin, which has a limit of its own
_AT_ONCE = min(4, os.cpu_count() or 1)
_WAIT_S = 0.05
_MOST_OUTPUT = 1 << 14
_MOST_LINES = 4
# Lines of TensorFlow's log that are no error, as "I0000 00:00:..", "2026-11-28 15:00:00.0: I ..".
_CHATTER = re.compile(
    r"\s*$|[IW]\d{4} |\d{4}-\d\d-\d\d [\d:.]+: [IW] |WARNING: All log mess|To enable the following"
)
_FAULT = re.compile(r"^(Fatal Python error: .*|Thread 0x.*|Current thread 0x.*)", re.MULTILINE)


class ImportOutcome(str, Enum):
    """What TensorFlow does with a library; the help of `modular-tf doctor` explains each."""

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
        return self not in {ImportOutcome.LOADS, ImportOutcome.IGNORED, ImportOutcome.UNKNOWN}


@dataclass(frozen=True, slots=True)
class TensorFlowInstallation:
    """The TensorFlow that `import tensorflow` imports; `problem` is why it fails by itself."""

    path: str
    version: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class FileRow:
    """A file that `import tensorflow` opens, or would open.

    `origin` is the directory `tensorflow-plugins` or the variable that TensorFlow finds it by.
    """

    path: str
    origin: str
    outcome: ImportOutcome
    message: str = ""
    remedy: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether the import ends with it, or the first use of its devices."""
        return self.outcome.is_bad


@dataclass(frozen=True, slots=True)
class PluginRow:
    """A plugin that is installed: what became of it here, and what TensorFlow does with it.

    `in_tensorflow` is None without a TensorFlow, of a plugin without filesystems, and of those that
    come with this package.
    """

    plugin: str
    path: str
    kinds: tuple[str, ...]
    schemes: tuple[str, ...]
    device_types: tuple[str, ...]
    kernels: int
    state: str
    message: str = ""
    in_tensorflow: ImportOutcome | None = None
    in_tensorflow_message: str = ""
    remedy: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it does not serve here."""
        return self.state in _SERVES_NOBODY


@dataclass(frozen=True, slots=True)
class StoreRow:
    """What a plugin reads from the environment for a scheme, and whether its server answers.

    `variables` has for each whether it is set, and never its value; `server` is host and port, ""
    where no variable names it; `problem` is why it accepts no connection, or which library is
    missing, and what to do.
    """

    scheme: str
    plugin: str
    variables: Mapping[str, bool]
    server: str = ""
    problem: str = ""

    @property
    def is_bad(self) -> bool:
        """Whether it has a problem, and a variable shows that it is wanted."""
        return bool(self.problem) and any(self.variables.values())


@dataclass(frozen=True, slots=True)
class AvailableScheme:
    """A scheme that is served here or in TensorFlow, or that a user may miss.

    `plugin` is "" where nobody serves it here; then `wanted_by` are the variables that are set for
    it, and `remedy` are the commands that bring it. `fails`: what is to serve it is not here.
    """

    scheme: str
    plugin: str
    in_tensorflow: bool
    message: str = ""
    remedy: str = ""
    wanted_by: tuple[str, ...] = ()
    fails: bool = False

    @property
    def is_missing(self) -> bool:
        """Whether nobody serves it."""
        return not (self.plugin or self.in_tensorflow)

    @property
    def is_bad(self) -> bool:
        """Whether it does not work here, and something shows that it is wanted."""
        return self.fails or (self.is_missing and bool(self.wanted_by))


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What works here, and what does not.

    `limits` has what worker processes are restricted to, and why they are not; "" where they are.
    """

    tensorflow: TensorFlowInstallation | None
    files: tuple[FileRow, ...]
    plugins: tuple[PluginRow, ...]
    stores: tuple[StoreRow, ...]
    schemes: tuple[AvailableScheme, ...]
    limits: Mapping[str, str]

    @property
    def is_imported(self) -> bool:
        """Whether there is a TensorFlow, and its import does not fail by itself."""
        return self.tensorflow is not None and not self.tensorflow.problem

    @property
    def is_well(self) -> bool:
        """Whether nothing fails."""
        rows: tuple[FileRow | PluginRow | StoreRow | AvailableScheme, ...]
        rows = (*self.files, *self.plugins, *self.stores, *self.schemes)
        is_broken = self.tensorflow is not None and not self.is_imported
        return not (is_broken or any(row.is_bad for row in rows))

    @property
    def lacking(self) -> tuple[str, ...]:
        """The schemes that are served here and that TensorFlow, which is imported, lacks."""
        if not self.is_imported:
            return ()
        return tuple(row.scheme for row in self.schemes if row.plugin and not row.in_tensorflow)


def diagnose(service: PluginService, on_wait: Callable[[], object]) -> Diagnosis:
    """Return what works here and what does not.

    Child processes import TensorFlow: one with all files of `tensorflow-plugins`, and where that
    fails one for each file. Another one registers each filesystem plugin. Each may take two minutes
    for TensorFlow itself, and `first_contact_timeout_s` for each plugin. What is not trusted is not
    run.

    The service has loaded its plugins: those whose bytes were new have been tried in a child.
    `on_wait` is called again and again while children run. `ShortageError` if this process has too
    few descriptors or too little memory now; `UnavailableError` if TensorFlow is installed, and no
    command runs Python here.
    """
    records = [
        record
        for record in service.plugins()
        if record.path is not None and not _SERVED_KINDS.isdisjoint(record.kinds)
    ]
    found = _TensorFlow(SearchPaths.of_process(), service.config, on_wait)
    files, registered = found.report(records)

    def row(record: PluginRecord) -> PluginRow:
        outcome, message = registered.get(record.path or "", (None, ""))
        remedy = ""
        if record.reason is not None and record.state.value in _SERVES_NOBODY:
            remedy = record.reason.remedy or ""
        elif outcome not in {None, ImportOutcome.LOADS} and record.schemes:
            remedy = "in Python: import modular_tf.tensorflow.auto"
            scheme = next((name for name in record.schemes if name in found.schemes), None)
            if scheme is not None:
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

    return Diagnosis(
        found.installation,
        files,
        tuple(map(row, records)),
        report_stores(service.plugins()),
        report_schemes(service, found.schemes),
        rights_here(),
    )


_Finding = tuple[ImportOutcome, str]  # and why


class _File(NamedTuple):
    """A file in a place that TensorFlow may search, or the place itself if it is no directory."""

    path: str
    origin: str
    place: str

    @property
    def is_named(self) -> bool:
        """Whether a variable names the file itself, so that nothing hides it but the variable."""
        return self.origin == TF_LIBRARY_PATH_VARIABLE and self.path == self.place

    def row(self, outcome: ImportOutcome, message: str) -> FileRow:
        """Return the row of this file, with the command that hides it from TensorFlow."""
        if self.origin == TF_LIBRARY_PATH_VARIABLE:
            away = f"unset {self.origin}"
        else:
            is_place = self.path == self.place
            target = f"{self.path}.away" if is_place else os.path.dirname(self.place)
            away = f"mv {quote(self.path)} {quote(target)}"
        if outcome is ImportOutcome.UNKNOWN:
            away = f"if the import ends: {away}"
        is_needed = outcome.is_bad or outcome is ImportOutcome.UNKNOWN
        return FileRow(self.path, self.origin, outcome, message, away if is_needed else "")


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


class _TensorFlow:
    """TensorFlow, as children import it."""

    def __init__(self, paths: SearchPaths, config: Config, on_wait: Callable[[], object]) -> None:
        self._config = config
        self._on_wait = on_wait
        self._environment = dict(paths.environment)
        self._named = self._environment.pop(TF_LIBRARY_PATH_VARIABLE, "")
        own = [path for path in preloaded(self._environment) if "libmodular_tf_" not in path]
        self._environment.pop("LD_PRELOAD", None)
        self._environment = with_preloaded(self._environment, own)
        schemes = [
            sysconfig.get_path(name, scheme)
            for scheme in sysconfig.get_scheme_names()
            for name in ("purelib", "platlib")
        ]
        sites = dict.fromkeys((*paths.site_directories, *map(os.path.abspath, schemes)))
        self._places = [os.path.join(site, TENSORFLOW_DIRECTORY) for site in sites]
        self._trials: dict[frozenset[_File], _ImportTrial] = {}
        folders = (os.path.join(at or os.getcwd(), "tensorflow") for at in sys.path)
        found = (path for path in folders if os.path.isfile(os.path.join(path, TENSORFLOW_SONAME)))
        self._folder = next(found, None)
        self.installation: TensorFlowInstallation | None = None
        self.schemes: tuple[str, ...] = ()

    def report(
        self, records: Iterable[PluginRecord]
    ) -> tuple[tuple[FileRow, ...], dict[str, _Finding]]:
        """Return what the import does with each file, and what registering each plugin does."""
        files = [file for place in self._places for file in _files_of(place, place)]
        if self._named:
            found = list(_files_of(self._named, TF_LIBRARY_PATH_VARIABLE))
            files += found or [_File(self._named, TF_LIBRARY_PATH_VARIABLE, self._named)]
        if self._folder is None:
            why = "no TensorFlow is installed"
            return tuple(file.row(ImportOutcome.IGNORED, why) for file in files), {}
        plugins = [
            record.path
            for record in records
            if record.path
            and "filesystem" in record.kinds
            and record.source != Source.BUNDLED.value
        ]
        refused = self._refused({file.path for file in files}.union(plugins))
        tried = [
            file
            for file in files
            if file.path not in refused
            and (file.path == file.place or ".so" in os.path.basename(file.path))
        ]
        bare = self._trial((), register=[path for path in plugins if path not in refused])
        self._run([bare, self._trial(tried)])
        problem = "" if bare.reported["imported"] else bare.ending
        self.schemes = tuple(bare.reported["schemes"])
        self.installation = TensorFlowInstallation(self._folder, bare.reported["imported"], problem)
        if problem:
            why = "TensorFlow itself cannot be imported"
            rows = tuple(file.row(ImportOutcome.UNKNOWN, why) for file in files)
            return rows, dict.fromkeys(plugins, (ImportOutcome.UNKNOWN, why))

        def is_searched(file: _File) -> bool:
            return file.origin == TF_LIBRARY_PATH_VARIABLE or file.place in bare.searched

        outcomes = self._outcomes([file for file in tried if is_searched(file)])
        for file in files:
            if file.path in refused:
                outcomes[file] = ImportOutcome.UNKNOWN, f"it was not tried: {refused[file.path]}"
            elif not is_searched(file):
                outcomes[file] = (
                    ImportOutcome.IGNORED,
                    f"TensorFlow in {self._folder} does not search this place",
                )
        ignored = ImportOutcome.IGNORED, _NO_LIBRARY_NAME
        return (
            tuple(file.row(*outcomes.get(file, ignored)) for file in files),
            {path: bare.outcome_of_plugin(path, refused) for path in plugins},
        )

    def _refused(self, paths: Iterable[str]) -> dict[str, str]:
        """Return why files are not tried: those that are not trusted, or that may be waited for."""
        known = {path: os.path.abspath(path) for path in paths if os.path.exists(path)}
        modes = {path: os.stat(path).st_mode for path in known}
        why = {
            path: "it is a FIFO, a socket or a device"
            for path, mode in modes.items()
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)
        }
        regular = tuple(known[path] for path, mode in modes.items() if stat.S_ISREG(mode))
        if regular:
            wanted = SearchPaths(arguments=regular, sources=frozenset((Source.ARGUMENT,)))
            for plugin in scan(discover(wanted).candidates, self._config, ScanCache.of_process()):
                if plugin.trust.refused is not None:
                    same = {plugin.path, *(twin.path for twin in plugin.candidate.twins)}
                    refused = plugin.trust.refused.message
                    why.update({path: refused for path in known if known[path] in same})
        return why

    def _trial(self, files: Iterable[_File], register: Sequence[str] = ()) -> _ImportTrial:
        """Return the trial of some files together, the same one each time."""
        key = frozenset(files)
        if key not in self._trials:
            environment, places = dict(self._environment), list(self._places)
            if any(file.origin == TF_LIBRARY_PATH_VARIABLE for file in key):
                environment[TF_LIBRARY_PATH_VARIABLE] = self._named
                if not any(file.is_named for file in key):
                    places.append(os.path.abspath(self._named))
            limit_s = self._config.first_contact_timeout_s
            job = {
                "watched": [os.path.abspath(file.path) for file in key],
                "shown": [os.path.abspath(file.path) for file in key if not file.is_named],
                "places": places,
                "most_s": round(_IMPORT_LIMIT_S + 3 * limit_s * (1 + len(key))),
                "register": list(register),
                "limit_s": max(1, round(limit_s)),
            }
            self._trials[key] = _ImportTrial(job, environment, limit_s)
        return self._trials[key]

    def _outcomes(self, files: Sequence[_File]) -> dict[_File, _Finding]:
        """Return what the import does with each file, and why."""
        together = self._trial(files)
        self._run([together])
        if together.reported.get("used"):
            return {file: together.outcome_of(file) for file in files}
        alone = {file: self._trial([file]) for file in files}
        self._run(alone.values())
        outcomes = {file: trial.outcome_of(file) for file, trial in alone.items()}
        good = [file for file, trial in alone.items() if trial.reported.get("used")]
        self._run([self._trial(good)])
        if not self._trial(good).reported.get("used"):  # though each of them loads alone
            beside: list[_File] = []
            for file in good:
                trial = self._trial([*beside, file])
                self._run([trial])
                if trial.reported.get("used"):
                    beside.append(file)
                else:
                    others = ", ".join(dict.fromkeys(other.path for other in beside))
                    outcome, message = trial.outcome_of(file)
                    outcomes[file] = outcome, f"beside {others}: {message}"
        return outcomes

    def _run(self, trials: Iterable[_ImportTrial]) -> None:
        """Run those of some trials that have not run, several at once, and end all of them."""
        waiting = [trial for trial in dict.fromkeys(trials) if trial.process is None]
        try:
            for outcome in Crew(_AT_ONCE, self._on_wait).run(_ImportTrial.run, waiting):
                outcome.get()
        finally:
            for trial in waiting:
                trial.end()


class _ImportTrial:
    """A child that imports TensorFlow with some plugins (`import_child`), and its reports."""

    def __init__(self, job: dict[str, Any], environment: dict[str, str], limit_s: float) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.searched: set[str] = set()
        self.registered: dict[str, dict[str, Any]] = {}  # reports, by the plugin's path
        self.reported: dict[str, Any] = {"imported": "", "schemes": [], "mapped": []}
        self._job = {**job, "mark": uuid.uuid4().hex}
        self._mark = self._job["mark"].encode()
        self._environment = environment
        self._limit_s = limit_s
        self._deadline = math.inf
        self._is_late = self._is_given_up = False
        self._output, self._rest = b"", b""

    def run(self) -> None:
        """Run the child until it has ended, or has had its time, or was given up. [any thread]"""
        python = find_interpreter()
        if python is None:
            raise UnavailableError("no command runs Python here, so TensorFlow cannot be imported")
        text = Path(__file__).with_name("import_child.py").read_text("utf-8")
        try:
            self.process = process = subprocess.Popen(  # noqa: S603  (this interpreter)
                [python, "-X", "faulthandler", "-c", text, json.dumps(self._job), *sys.path],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        except OSError as error:
            raise_shortage(error)
            raise
        self._deadline = time.monotonic() + _IMPORT_LIMIT_S
        with process.stdout as output:  # type: ignore[union-attr]  # it is a pipe
            watched, end = [output], os.WEXITED | os.WNOHANG | os.WNOWAIT
            while not self._is_given_up:
                is_over = os.waitid(os.P_PID, process.pid, end) is not None
                if select.select(watched, [], [], 0 if is_over else _WAIT_S)[0]:
                    if data := os.read(output.fileno(), 1 << 16):
                        self._read(data)
                    else:  # it has closed its output
                        watched = []
                elif is_over:
                    break
                if time.monotonic() > self._deadline:
                    self._is_late = not is_over
                    break
            self.end()

    def end(self) -> None:
        """End the child and all that it has started, also one that begins later. [any thread]"""
        self._is_given_up = True
        if self.process is not None and self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def _read(self, data: bytes) -> None:
        """Note the reports in what the child has written, and the last of its other lines."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            if not line.startswith(self._mark):
                self._output = (self._output + line + b"\n")[-_MOST_OUTPUT:]
                continue
            report = json.loads(line.removeprefix(self._mark))
            self.reported |= report
            plugins = 1
            if "searched" in report:
                self.searched.add(report["searched"])
            if "registered" in report:
                self.registered[report["registered"]] = report
            if {"searched", "imported"} & report.keys():
                plugins = max(1, len(self._job["watched"]))
            self._deadline = time.monotonic() + self._limit_s * plugins + _GRACE_S

    @property
    def ending(self) -> str:
        """How it ended, in words: the exception, or the signal and the last of its output."""
        if failure := self.reported.get("failed"):
            return str(failure)
        if self._is_late:
            return f"it gave no answer within {self._limit_s:g} s"
        status = None if self.process is None else self.process.returncode
        return _ending(status, (self._output + self._rest).decode("utf-8", "replace"))

    def outcome_of(self, file: _File) -> _Finding:
        """Return what the import did with a file, or what ended the import."""
        if not self.reported.get("used"):
            if self._is_late:
                outcome = ImportOutcome.HANGS
            elif "failed" in self.reported:
                outcome = ImportOutcome.FAILS
            else:
                outcome = (
                    ImportOutcome.ENDS_IN_USE if self.reported["imported"] else ImportOutcome.ABORTS
                )
            return outcome, self.ending
        if os.path.abspath(file.path) not in self.reported["mapped"]:
            return ImportOutcome.IGNORED, _NO_LIBRARY_NAME
        names = (*_FUNCTIONS, _FILESYSTEMS)
        defined = set[str]()
        with suppress(ElfError), ElfFile(file.path) as elf:  # it may be gone by now
            defined = {name for name in names if elf.find(name) is not None}
        if not defined.isdisjoint(_FUNCTIONS):
            return ImportOutcome.LOADS, ""
        if defined:
            auto = "`import modular_tf.tensorflow.auto` registers them"
            return ImportOutcome.IGNORED, f"it brings filesystems only; {auto}"
        return ImportOutcome.IGNORED, "it is no plugin: its constructors run, and nothing else"

    def outcome_of_plugin(self, path: str, refused: Mapping[str, str]) -> _Finding:
        """Return what registering a plugin did, or why it was not registered."""
        if path not in self.registered:
            return ImportOutcome.UNKNOWN, f"it was not tried: {refused.get(path) or self.ending}"
        report = self.registered[path]
        if report["status"] == -signal.SIGALRM:
            return ImportOutcome.HANGS, f"it gave no answer within {self._limit_s:g} s"
        if report["status"] != 0:
            return ImportOutcome.ABORTS, _ending(report["status"], report["output"])
        message = str(report["message"])
        return (ImportOutcome.FAILS if message else ImportOutcome.LOADS), message


def _ending(status: int | None, output: str) -> str:
    """Return how a process ended, and the last lines that it wrote about it."""
    words = ChildEnding(status=status, last_output=output).in_words()
    fault = _FAULT.search(output)
    last = plain_lines(output[: fault.start()] if fault else output).split("\n")
    lines = [line for line in last if not _CHATTER.match(line)]
    return "\n".join([f"it {words}", *lines[-_MOST_LINES:]])


# -- stores and schemes ----------------------------------------------------------------------------


def report_stores(records: Iterable[PluginRecord]) -> tuple[StoreRow, ...]:
    """Return one row for each scheme whose plugin reads variables, in 8 seconds at most.

    Servers that a variable names are connected to, and nothing is sent to them.
    """
    stores = [
        (record.name, record.path, scheme)
        for record in records
        if record.path is not None
        for scheme in record.schemes
        if variables_of(record.path, scheme)
    ]

    def row(store: tuple[str, str, str]) -> StoreRow:
        plugin, library, scheme = store
        known = store_class(library, scheme) or Store
        endpoints = Endpoints(partial(known.server, environment=os.environ), plugin)
        try:
            endpoints.require("doctor", f"{scheme}://")
            problem = known.missing_library()
        except UnavailableError as error:
            problem = error.message.partition(": ")[2].removesuffix(f" (plugin {plugin})")
        server = str(endpoints.server_of(f"{scheme}://") or "")
        is_set = {name: bool(os.environ.get(name)) for name in variables_of(library, scheme)}
        return StoreRow(scheme, plugin, is_set, server, problem)

    return tuple(results_at_once(row, stores, len(stores) or 1))


def variables_of(library: str, scheme: str) -> tuple[str, ...]:
    """Return the variables that a plugin reads for a scheme, by the file name of its library."""
    known = store_class(library, scheme)
    options = storage_options_of(library, scheme).variables.values()
    return tuple(dict.fromkeys((*(known.variables if known else ()), *options)))


def report_schemes(
    service: PluginService, in_tensorflow: Collection[str]
) -> tuple[AvailableScheme, ...]:
    """Return one row for each scheme, by their names; nothing is imported for it but fsspec."""
    served, fallback = service.schemes(), service.fallback_schemes()
    rows = []
    for scheme in sorted({*served, *in_tensorflow, *missed_schemes()} - {""}):
        problem, remedy = service.foreseen_problem(scheme)
        message = problem or fallback.get(scheme, "")
        wanted_by: tuple[str, ...] = ()
        if scheme not in served and scheme not in in_tensorflow:
            libraries = [row.library for row in storage_options() if scheme in row.schemes]
            names = {name for library in libraries for name in variables_of(library, scheme)}
            wanted_by = tuple(sorted(name for name in names if os.environ.get(name)))
            message = f"set for it: {', '.join(wanted_by)}" if wanted_by else ""
            problem, remedy = "", service.next_step(scheme)
        rows.append(
            AvailableScheme(
                scheme,
                plugin=served.get(scheme, ""),
                in_tensorflow=scheme in in_tensorflow,
                message=message,
                remedy=remedy,
                wanted_by=wanted_by,
                fails=bool(problem),
            )
        )
    return tuple(rows)
