"""The recorded calls, and the answers that differ on purpose."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

HERE = Path(__file__).parent


def cases() -> dict[str, tuple[dict[str, Any], str]]:
    """Every case of the table with the store that it runs on, by the key that recordings use."""
    table = tomllib.loads((HERE / "calls.toml").read_text(encoding="utf-8"))
    return {
        f"{case['id']}@{store}": (case, store)
        for case in table["case"]
        for store in case.get("on", ["local", "ram"])
    }


def recording() -> dict[str, Any]:
    """What TensorFlow answered, with its version."""
    return json.loads((HERE / "recorded_tf_2_21.json").read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Found:
    """One answer that is not TensorFlow's.

    `step` is the index of the call in its case, or "changes" for what the case leaves behind.
    """

    case: str
    step: int | str
    tensorflow: Any
    ours: Any
    call: str = ""

    def __str__(self) -> str:
        return (
            f"{self.case} step {self.step}: {self.call}\n"
            f"    tensorflow = {_toml(self.tensorflow)}\n    ours = {_toml(self.ours)}"
        )


@dataclass(frozen=True)
class Difference(Found):
    """One that is ours on purpose; `case` is a pattern of keys."""

    reason: str = ""

    def covers(self, found: Found) -> bool:
        return fnmatchcase(found.case, self.case) and (
            (found.step, found.tensorflow, found.ours) == (self.step, self.tensorflow, self.ours)
        )


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def differences() -> list[Difference]:
    """The declared differences, one for each case, step and pair of answers."""
    table = tomllib.loads((HERE / "deliberate_differences.toml").read_text(encoding="utf-8"))
    return [
        Difference(
            case=answer["case"],
            step=answer["step"],
            tensorflow=json.loads(answer["tensorflow"]),
            ours=json.loads(answer["ours"]),
            reason=group["reason"],
        )
        for group in table["difference"]
        for answer in group["answers"]
    ]


def compare(case: str, tensorflow: dict[str, Any], ours: dict[str, Any]) -> list[Found]:
    """List the answers of one case that differ."""
    found = [
        Found(case, number, _answer(theirs), _answer(mine), theirs["call"])
        for number, (theirs, mine) in enumerate(
            zip(tensorflow["steps"], ours["steps"], strict=True)
        )
        if _answer(theirs) != _answer(mine)
    ]
    if tensorflow["changes"] != ours["changes"]:
        changes = (tensorflow["changes"], ours["changes"])
        found.append(Found(case, "changes", *changes, "what it leaves behind"))
    return found


def _answer(step: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in step.items() if key != "call"}
