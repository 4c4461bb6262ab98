"""The commands on plugins in quarantine, which took a process down."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from modular_tf.cli.frame import GlobalOptions, Invocation, argument, command
from modular_tf.cli.output import EXPECTED, message_of, report_error, when
from modular_tf.cli.plugins import reason_line
from modular_tf.cli.process import Exit, expect_exit
from modular_tf.cli.values import QUARANTINED
from modular_tf.codec import encode
from modular_tf.processes.ending import signal_name
from modular_tf.service.storage.notes import Notes
from modular_tf.service.storage.quarantine import QuarantineStore

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.service.report import PluginRecord
    from modular_tf.service.storage.quarantine import Entry

_GOOD_STATES = ("loaded", "shadowed", "disabled")
_NAMES = "a plugin's name, its path, or six or more digits of its SHA-256"


def _open_store() -> QuarantineStore:
    """Return the user's quarantine, with what took down processes before this one.

    `ShortageError` if it cannot be read now.
    """
    store = QuarantineStore.of_process()
    if store.shortage is not None:
        raise store.shortage
    if (damaged := store.damaged) is not None:
        report_error(
            f"{damaged}: this quarantine was damaged and was renamed; its plugins are tried again"
            " before they run. Remove the file to end this message"
        )
    notes = Notes.of_process()
    store.take(notes.of_ended(), notes)
    return store


def _entries_named(store: QuarantineStore, names: Iterable[str]) -> tuple[list[Entry], bool]:
    """Return the entries that names, paths or first digits of SHA-256 mean, and whether all do."""
    found: dict[str, Entry] = {}
    all_known = True
    for name in names:
        meant = store.named(name)
        found |= {entry.sha256: entry for entry in meant}
        if not meant:
            all_known = False
            report_error("nothing in quarantine has that name, path or SHA-256", name)
    return list(found.values()), all_known


@command(calls_plugins=False)
def list_quarantined(call: Invocation) -> Exit:
    """List the quarantined plugins: what each did, when, and what changed on the host since."""
    store = _open_store()
    entries = store.entries()
    records = [{**encode(each), "changes": store.changes_since(each)} for each in entries]

    def signal(record: dict[str, Any]) -> str | None:
        number = record["incident"]["signal"]
        return None if number is None else signal_name(number)

    columns = (
        *("name", ("rule", lambda record: record["incident"]["rule"]), ("signal", signal)),
        ("last call", lambda record: record["incident"]["last_call"]),
        *(("when", lambda record: when(record["time"] * 1e9, "at no time")), "path"),
    )
    call.show("quarantine", records, columns)
    is_long = not call.json and (call.terminal or call.options.verbose > 0)
    for entry, record in zip(entries, records, strict=True) if is_long else ():
        violation = entry.incident.violation
        call.lines(["", f"{entry.name} ({entry.path})"])
        call.lines([f"  {violation.message} [{violation.rule_id}]", f"  {violation.remedy}"])
        for change in record["changes"]:
            call.line(f"  changed since, so that it is tried again when it is found: {change}")
        if call.options.verbose:
            call.line(f"  SHA-256 {entry.sha256}")
            call.lines(f"    {frame}" for frame in entry.incident.backtrace)
    if not entries:
        report_error("nothing is in quarantine")
    return Exit.DONE if entries else Exit.NOTHING


@command()
@argument("names", type=QUARANTINED, nargs=-1, required=True, help=_NAMES)
def retry(call: Invocation, names: tuple[str, ...]) -> Exit:
    """Release plugins from the quarantine and try each again in a process of its own."""
    store = _open_store()
    entries, is_well = _entries_named(store, names)
    records: list[dict[str, Any]] = []
    for entry in entries:
        store.release(entry.sha256)
        try:
            records.append(_try_again(entry.path).as_dict())
        except EXPECTED as error:
            is_well = False
            report_error(message_of(error, entry.path), entry.path)
    is_well = is_well and all(record["state"] in _GOOD_STATES for record in records)
    expect_exit(Exit.DONE if is_well else Exit.NO)
    reason = ("reason", lambda record: reason_line(record["reason"]))
    call.show("plugins", records, ("name", "state", "path", reason))
    for record in records:
        if record["state"] not in _GOOD_STATES:
            report_error(f"is {record['state']}", record["path"] or record["name"])
    return Exit.DONE if is_well else Exit.NO


def _try_again(path: str) -> PluginRecord:
    """Return the record of a plugin that is probed, tried and loaded again.

    `NotFoundError` if the file is not there any more.
    """
    # It is mapped here too, at once: what the first process survives may end the second.
    trying = Invocation(GlobalOptions(plugin=[path], bundled=False)).session(
        load=None, adapted=lambda config: replace(config, first_contact="always", load="eager")
    )
    with trying as service:
        service.load(path)
        return next(record for record in service.plugins() if record.path == path)


@command(calls_plugins=False)
@argument("names", type=QUARANTINED, nargs=-1, help=f"{_NAMES}; by default all")
def clear(call: Invocation, names: tuple[str, ...]) -> Exit:
    """Release plugins from quarantine; the next process that finds them tries them."""
    store = _open_store()
    entries, all_known = _entries_named(store, names) if names else (store.entries(), True)
    for entry in entries:
        store.release(entry.sha256)
    released = [encode(entry) for entry in entries]
    call.show("cleared", released, (("cleared", "name"), "path"))
    return Exit.DONE if all_known else Exit.NO
