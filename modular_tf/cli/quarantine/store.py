"""The quarantine store that the verbs use, and the entries named on a command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from modular_tf.cli.failures import Failures
    from modular_tf.service.kept.quarantine import Entry, QuarantineStore


def open_store() -> QuarantineStore:
    """Return the user's quarantine, with what took down processes before this one."""
    from modular_tf.service.kept.load_marks import LoadMarks  # noqa: PLC0415  (not needed for help)
    from modular_tf.service.kept.notes import read_notes, take_in  # noqa: PLC0415
    from modular_tf.service.kept.quarantine import QuarantineStore  # noqa: PLC0415

    store = QuarantineStore.of_process()
    take_in(store, read_notes(LoadMarks.of_process()))
    return store


def entries_named(store: QuarantineStore, names: Iterable[str], failures: Failures) -> list[Entry]:
    """Return the entries that names, paths or first digits of SHA-256 mean, each once."""
    found: dict[str, Entry] = {}
    for name in names:
        meant = store.named(name)
        found |= {entry.sha256: entry for entry in meant}
        if not meant:
            failures.add("nothing in quarantine has that name, path or SHA-256", name)
    return list(found.values())
