"""The probe's records: lines of a file, and what they say by scenario."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import numpy as np

SCENARIO = "== "
REGISTRATION = "registration"
END = "end of the process"
CODES = (
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
)

Answers = dict[str, dict[str, str]]


def append(log: Path, line: str) -> None:
    """Add a line, as the probe does."""
    with log.open("a", encoding="utf-8") as file:
        file.write(line.replace("\n", " ") + "\n")


def read(log: Path) -> Answers:
    """Return the answers by scenario and call; a call that is repeated gets a number."""
    answers: Answers = {}
    scenario = REGISTRATION
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        if line.startswith(SCENARIO):
            scenario = line.removeprefix(SCENARIO)
            answers.setdefault(scenario, {})
            continue
        key, _, answer = line.partition("\t")
        of_scenario = answers.setdefault(scenario, {})
        of_scenario[_unused(key, of_scenario)] = answer
    return answers


def _unused(key: str, taken: dict[str, str]) -> str:
    number = 2
    name = key
    while name in taken:
        name = f"{key} ({number})"
        number += 1
    return name


def without_texts(answers: dict[str, str]) -> dict[str, str]:
    """Return the answers without the messages of statuses, which each host words itself."""
    return {key: answer.partition(" -- ")[0] for key, answer in answers.items()}


def shown(code: str, outputs: Sequence[np.ndarray]) -> str:
    """Return the outcome of a call as text: its code, and its outputs by type, shape and value."""
    return " ".join([code, *map(_shown, outputs)])


def _shown(output: np.ndarray) -> str:
    shape = ",".join(map(str, output.shape))
    return f"{output.dtype}[{shape}]={output.tolist()}"
