"""The commands on plugins: which there are, what they serve, how they change, where they lie."""

from __future__ import annotations

import math
import os
import re
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import click

from modular_tf.cli.frame import Invocation, argument, command
from modular_tf.cli.output import counted, report_error, report_problems
from modular_tf.cli.process import Exit, expect_exit, require_reader, terminate_as_interrupt
from modular_tf.cli.values import EXPLAINED

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from modular_tf.cli.output import Column, Printer
    from modular_tf.service.report import PluginChange, PluginRecord
    from modular_tf.service.why import Explanation

_POLL_S = 0.5  # between two checks for files that are still being written
_RULE_ID = re.compile(r"(FS|KN|LD|SE)-\d+", re.IGNORECASE)


# -- plugins --------------------------------------------------------------------------------------


@command()
@click.option("--no-load", is_flag=True, help="only search; run no plugin's code")
def list_plugins(call: Invocation, *, no_load: bool) -> Exit:
    """List every plugin that was found, its state, and why it is not loaded."""
    with call.session(load=None) as service:
        report = service.discover() if no_load else service.load()
        fallback = service.fallback_schemes()
    plugins = [listed_object(record) for record in report.plugins]
    more = {"fallback": fallback} if fallback else {}
    show_plugins(plugins, call, with_warnings=call.options.verbose > 0, **more)
    _show_fallback(fallback, call)
    report_problems(report.problems)
    if not plugins:
        report_error("no plugins were found; `modular-tf paths` shows where they are searched")
    return Exit.DONE if plugins else Exit.NOTHING


def plugin_object(record: PluginRecord) -> dict[str, Any]:
    """Return a record as a JSON object, with all reasons why it is not loaded, and warnings."""
    reasons = [reason.as_dict() for reason in record.reasons]
    warnings = [warning.as_dict() for warning in record.warnings]
    return {**record.as_dict(), "reasons": reasons, "warnings": warnings}


def listed_object(record: PluginRecord) -> dict[str, Any]:
    """Return the same, with a reason for each that is not loaded."""
    plugin = plugin_object(record)
    if record.state.value == "found" and not record.reasons:
        message = "nothing has loaded it yet"
        reason = {"stage": "load", "rule": None, "message": message, "remedy": None}
        plugin |= {"reason": reason, "reasons": [reason]}
    return plugin


def show_plugins(
    plugins: list[dict[str, Any]], call: Printer, *, with_warnings: bool, **more: Any
) -> None:
    """Show plugins as a table; to a person, why one does not serve stands below it."""

    def serves(plugin: dict[str, Any]) -> list[str]:
        kernels = [counted(plugin["kernels"], "kernel")] if plugin.get("kernels") else []
        return [*_offered(plugin["schemes"], plugin["device_types"]), *kernels]

    columns: list[Column] = ["name", "state", "kinds", ("serves", serves), ("source", _source)]
    if not call.terminal:
        reasons = ("reason", lambda plugin: " ".join(map(reason_line, plugin["reasons"])))
        warned = ("warnings", lambda plugin: " ".join(map(reason_line, plugin["warnings"])))
        columns += "path", reasons, warned
    call.show("plugins", plugins, columns, **more)
    if not call.terminal:
        return
    for plugin in plugins:
        warnings = plugin["warnings"] if with_warnings else []
        if plugin["reasons"] or warnings:
            call.line()
            call.line(f"{plugin['name']} ({plugin['path']})")
        call.lines(f"  {plugin['state']}: {reason_line(reason)}" for reason in plugin["reasons"])
        call.lines(f"  warning: {reason_line(warning)}" for warning in warnings)
    n_warnings = sum(len(plugin["warnings"]) for plugin in plugins)
    if n_warnings and not with_warnings:
        call.line()
        call.line(f"{counted(n_warnings, 'warning')}; `modular-tf list -v` shows more")


def _offered(schemes: Iterable[str], device_types: Iterable[str]) -> list[str]:
    return [*(f"{scheme}://" if scheme else "local paths" for scheme in schemes), *device_types]


def _source(plugin: dict[str, Any]) -> str:
    """Return what found a plugin, and its package's version, with a name if that is another."""
    name, _, version = (plugin["distribution"] or "").partition(" ")
    release = "" if not name else version if name == plugin["name"] else f"({name} {version})"
    return f"{plugin['source']} {release}".rstrip()


def reason_line(reason: dict[str, Any] | None) -> str:
    """Return a reason in one line: message, rule, remedy."""
    if not reason:
        return ""
    rule = f" [{reason['rule']}]" if reason["rule"] else ""
    remedy = f" {reason['remedy']}" if reason["remedy"] else ""
    return " ".join(f"{reason['message']}{rule}{remedy}".split())


# -- changes --------------------------------------------------------------------------------------


@command()
@click.option("--once", is_flag=True, help="end after the first change")
@click.option("--for", "seconds", metavar="SECONDS", type=float, help="end after so many seconds")
def watch(call: Invocation, *, once: bool, seconds: float | None) -> Exit:
    """Follow plugin files that come, are replaced and go, and report each change."""
    from queue import Empty, SimpleQueue  # noqa: PLC0415  (only here)

    news: SimpleQueue[PluginChange] = SimpleQueue()
    with (
        suppress(KeyboardInterrupt),
        terminate_as_interrupt(),
        call.session(load=False) as service,
        service.watch(news.put) as watching,
    ):
        service.load()  # now that files may be overwritten in place
        report_error(f"watching {len(service.plugins())} plugins; end with Ctrl-C")
        end = math.inf if seconds is None else time.monotonic() + seconds
        reported: set[str] = set()
        while time.monotonic() < end:
            try:
                change = news.get(timeout=max(0.0, min(_POLL_S, end - time.monotonic())))
            except Empty:
                unfinished = watching.unfinished
                for path in unfinished.keys() - reported:
                    report_error(f"waiting until {path} is whole: {unfinished[path]}")
                reported = set(unfinished)
                require_reader()
                continue
            if call.json:
                call.json_line(**change.as_dict())
            else:
                call.row(_row(change))
            sys.stdout.flush()
            if once:
                break
    return Exit.DONE


def _row(change: PluginChange) -> tuple[str, ...]:
    record = change.record
    why = change.refusal or record.reason
    return (
        change.kind.value,
        change.plugin,
        "" if change.kind.value == "removed" else record.state.value,
        ", ".join(_offered(record.schemes, record.device_types)),
        change.path,
        reason_line(why.as_dict() if why else None),
    )


# -- schemes --------------------------------------------------------------------------------------


@command()
def schemes(call: Invocation) -> Exit:
    """List the schemes of filesystems and the plugin that serves each."""
    with call.session() as service:
        served = sorted(service.schemes().items())
        fallback = service.fallback_schemes()
    records = [
        {"scheme": scheme, "plugin": plugin}
        | ({"fallback": fallback[scheme]} if scheme in fallback else {})
        for scheme, plugin in served
    ]
    shown = ("scheme", lambda record: record["scheme"] or "(local paths)")
    call.show("schemes", records, (shown, "plugin"))
    _show_fallback(fallback, call)
    if not served:
        report_error("no plugin serves a scheme; `modular-tf list` shows what was found")
    return Exit.DONE if served else Exit.NOTHING


def _show_fallback(fallback: Mapping[str, str], call: Invocation) -> None:
    """Show to a person which schemes fsspec's clients serve, and why."""
    if fallback and call.terminal:
        call.lines(["", *fallback.values()])


# -- explanations ---------------------------------------------------------------------------------


@command()
@argument(
    "name",
    type=EXPLAINED,
    help="a plugin, a file or directory, a scheme or URI (ram or ram://x), a device type or a"
    " device (GPU or GPU:0), an installed package, an operation (MatMul), or the id of a rule",
)
def why(call: Invocation, *, name: str) -> Exit:
    """Explain a plugin, file, scheme, device, package, operation or rule.

    Of a name: why it serves, or does not. Of a rule (FS-013): what it requires, and what to do.
    """
    more: dict[str, Any] = {}
    if _RULE_ID.fullmatch(name) and not os.path.exists(name):
        explanation, more = _rule_page(name.upper())
    else:
        with call.session() as service:
            if os.path.isfile(name):
                service.load(name)
            explanation = service.why(name)
    code = Exit.DONE if explanation.known else Exit.NO
    expect_exit(code)
    call.show_object(explanation.as_dict() | more, lambda: call.lines(explanation.lines))
    return code


def _rule_page(rule_id: str) -> tuple[Explanation, dict[str, Any]]:
    """Return what a rule requires, and the same for programs."""
    from modular_tf.rules import loader_rules  # noqa: PLC0415  (other names need none of it)
    from modular_tf.service.why import Explanation, Fact  # noqa: PLC0415

    rules, missing = loader_rules(), ""
    judges = "the host, whenever it finds, tries or loads a plugin"
    if rule_id not in rules:
        judges = f"`modular-tf check PLUGIN --only {rule_id}`"
    tried: dict[str, str] = {}
    try:
        from modular_tf.check.catalogue import all_checks, all_rules  # noqa: PLC0415
        from modular_tf.check.report.wording import PATH_LETTERS, facts_of_check  # noqa: PLC0415

        rules = all_rules()
        if (check := all_checks().get(rule_id)) is not None:
            tried["tried"] = " · ".join(facts_of_check(check))
            if check.kind == "filesystem":
                tried["paths"] = PATH_LETTERS
    except ModuleNotFoundError:
        missing = "; those of the conformance kit, which is not installed, are missing"

    def explained(*facts: tuple[str, str], known: bool) -> Explanation:
        found = tuple(Fact(f"rule {rule_id}", stage, text) for stage, text in facts)
        return Explanation(rule_id, known=known, facts=found)

    rule = rules.get(rule_id)
    if rule is None:
        from difflib import get_close_matches  # noqa: PLC0415  (for mistakes only)

        close = get_close_matches(rule_id, rules, n=3)
        hint = f"did you mean {', '.join(close)}?" if close else f"there are {len(rules)} rules"
        absent = ("absent", f"there is no rule {rule_id}{missing}")
        return explained(absent, ("suggestion", hint), known=False), {}
    fields = ("id", "requirement", "consequence", "remedy", "source")
    page = {name: getattr(rule, name) for name in fields} | {"severity": rule.severity.value}
    return explained(
        ("state", f"rule {rule.id} ({rule.severity.demand}): {rule.requirement}"),
        ("if not", rule.consequence),
        ("remedy", rule.remedy),
        ("source", rule.source),
        *tried.items(),
        ("judged by", judges),
        known=True,
    ), {"rule": page}


# -- places ---------------------------------------------------------------------------------------


@command()
def paths(call: Invocation) -> Exit:
    """List every place where plugins are searched for, in order of precedence, and what was there.

    Then every setting, and whether a variable, the configuration file or the default decided it;
    and the functions that installed packages have for hooks, in the order in which they are called.
    """
    from modular_tf.discovery.privileges import is_privileged  # noqa: PLC0415  (not for help)
    from modular_tf.discovery.sources.search_paths import (  # noqa: PLC0415
        cache_directory,
        ignored_variables,
        state_directory,
    )
    from modular_tf.discovery.trust.policy import default_lock_path  # noqa: PLC0415
    from modular_tf.rules.trust import STORAGE_TRUSTED  # noqa: PLC0415
    from modular_tf.service.configuration import config_path  # noqa: PLC0415
    from modular_tf.service.storage.private_directory import why_untrusted  # noqa: PLC0415

    with call.session(load=False) as service:
        report = service.report()
        used = service.config.path
        settings = _settings(service.config, os.environ)
    path, privileged = used or config_path(os.environ), is_privileged()
    places = {
        "cache": cache_directory(os.environ, privileged=privileged),
        "state": state_directory(os.environ, privileged=privileged),
        "lock": default_lock_path(path),
    }
    reasons = {name: why_untrusted(at) for name, at in places.items() if at and name != "lock"}
    unused = {name: why for name, why in reasons.items() if why}
    hooks = [function.as_dict() for function in report.hooks]
    failures = [failure.as_dict() for failure in report.hook_failures]
    call.show(
        "paths",
        [{**place._asdict(), "source": str(place.source)} for place in report.searched],
        ("source", ("found", _found), "path", ("named by", "origin")),
        config={"path": path, "used": used is not None},
        settings=settings,
        own_places=places,
        unused_places=unused,
        ignored_variables=[variable._asdict() for variable in ignored_variables(os.environ)],
        hooks=hooks,
        hook_failures=failures,
    )
    if not call.terminal:
        return Exit.DONE
    there = "" if used else " (not there)"
    call.lines(["", f"configuration: {path or 'nowhere'}{there}", ""])
    values = ("value", lambda setting: str(setting["value"]))
    call.show("settings", settings, (("setting", "key"), values, ("decided by", "origin")))
    call.line()
    notes = {name: f" (not used: {why} [{STORAGE_TRUSTED}])" for name, why in unused.items()}
    call.facts({name: f"{at or 'nowhere'}{notes.get(name, '')}" for name, at in places.items()})
    for name, records, columns in (
        ("hooks", hooks, ("hook", "implementation", ("called", _call_order))),
        ("failures", failures, [("failed hooks", "message")]),
    ):
        if records:
            call.line()
            call.show(name, records, columns)
    return Exit.DONE


def _found(place: dict[str, Any]) -> str:
    if place["ignored"]:
        return f"ignored: {place['ignored']}"
    if not place["exists"]:
        return "not there"
    return f"{place['hits']} {'library' if place['hits'] == 1 else 'libraries'}"


def _call_order(function: dict[str, Any]) -> list[str]:
    return [*filter(None, (function["order"], "wrapper" if function["wrapper"] else None))]


def _settings(config: Any, environment: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return key, value and origin (variables, the file's path or "default") of each setting."""
    from modular_tf.service.configuration import (  # noqa: PLC0415  (the service has loaded it)
        CONFIG_VARIABLE,
        KEYS,
        Config,
        load_config,
        variables_of,
    )

    of_file = (CONFIG_VARIABLE, "XDG_CONFIG_HOME", "HOME")
    places = {name: environment[name] for name in of_file if name in environment}
    by_file, default = Config() if config.path is None else load_config(places), Config()
    settings = []
    for key in sorted({name.partition(".")[0] for name in KEYS}):
        value = getattr(config, key)
        if value != getattr(by_file, key):
            variables = [variable for variable in variables_of(key) if environment.get(variable)]
            origin = ", ".join(variables) or "argument"
        else:
            origin = "default" if value == getattr(default, key) else config.origin
        settings.append({"key": key, "value": _plain(value), "origin": origin})
    return settings


def _plain(value: Any) -> Any:
    """Return the value of a setting as JSON has it."""
    from dataclasses import asdict, is_dataclass  # noqa: PLC0415  (only here)

    from modular_tf.service.configured_filesystems import ConfiguredFilesystem  # noqa: PLC0415

    if isinstance(value, ConfiguredFilesystem):
        return value.shown()
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if hasattr(value, "items"):
        return {key: _plain(entry) for key, entry in value.items()}
    return [_plain(entry) for entry in value] if isinstance(value, tuple | list) else value


# -- headers --------------------------------------------------------------------------------------


@command(calls_plugins=False)
@click.option("--include", is_flag=True, help="write this directory, for -I (the default)")
@click.option("--cmake", is_flag=True, help="write this directory, for -Dmodular_tf_DIR")
def headers(call: Invocation, *, include: bool, cmake: bool) -> Exit:
    """Return where the C headers for plugin authors lie.

    For a compiler: -I"$(modular-tf headers)". For CMake:
    -Dmodular_tf_DIR="$(modular-tf headers --cmake)".
    """
    from modular_tf.headers import cmake_directory, include_directory  # noqa: PLC0415  (not for others)

    directories = {"include": include_directory(), "cmake": cmake_directory()}
    wanted = directories["cmake" if cmake and not include else "include"]
    call.show_object(directories, lambda: call.line(wanted))
    return Exit.DONE
