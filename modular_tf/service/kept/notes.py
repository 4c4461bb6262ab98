"""What ended processes left behind: read, recorded in the quarantine, and only then removed.

Whatever interrupts it, the next look begins again: a note stays until what it says is on the disk,
and one that was recorded already is not counted once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from modular_tf.service.kept.ended_calls import EndedCall, ended_calls, forget_ended_calls

if TYPE_CHECKING:
    from collections.abc import Sequence

    from modular_tf.service.kept.load_marks import Culprit, LoadMarks
    from modular_tf.service.kept.quarantine import QuarantineStore


class Notes(NamedTuple):
    """What ended processes left behind.

    Attributes:
        marks: Where the marks are.
        culprits: The plugins that they were loading.
        calls: The calls into plugins in which they ended.
    """

    marks: LoadMarks
    culprits: Sequence[Culprit]
    calls: Sequence[EndedCall]


def read_notes(marks: LoadMarks) -> Notes:
    """Return what ended processes left behind. It may wait for a second. [any thread]

    Args:
        marks: The load marks of this user.

    Raises:
        ShortageError: It cannot be read now.
    """
    return Notes(marks, marks.culprits(), ended_calls())


def take_in(store: QuarantineStore, notes: Notes) -> None:
    """Record notes in the quarantine, and remove those that are on the disk there.

    Raises:
        ShortageError: It is not known now what was recorded before; nothing was recorded.
    """
    if not notes.culprits and not notes.calls:
        return
    store.refresh()
    if store.shortage is not None:
        raise store.shortage
    store.add_culprits(notes.culprits)
    store.add_ended_calls(notes.calls)
    if store.is_kept:
        notes.marks.forget(notes.culprits)
        forget_ended_calls(notes.calls)
