"""Options that were set in a worker process, to be set again in the one that follows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.filesystem.configuration import Option

if TYPE_CHECKING:
    from modular_tf.filesystem.configuration import OptionValue
    from modular_tf.filesystem.filesystem import Filesystem


class SetOptions(NamedTuple):
    """One call that set options.

    Attributes:
        filesystem: The number of the worker's filesystem.
        options: What was set.
        is_single: Whether it was set by `set_filesystem_configuration_option`.
    """

    filesystem: int
    options: tuple[Option, ...]
    is_single: bool

    def replaces(self, earlier: SetOptions) -> bool:
        """Return whether nothing is left of an earlier call when this one is made."""
        names = {option.name for option in self.options}
        return self.filesystem == earlier.filesystem and names.issuperset(
            option.name for option in earlier.options
        )

    def set_on(self, filesystem: Filesystem) -> None:
        """Make the call again."""
        if self.is_single:
            filesystem.set_filesystem_configuration_option(self.options[0])
        else:
            filesystem.set_filesystem_configuration(self.options)

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows it."""
        options = [
            [
                option.name,
                list(map(_as_json, option.values)),
                option.description,
                bool(option.per_file),
            ]
            for option in self.options
        ]
        return {**self._asdict(), "options": options}

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> SetOptions:
        """Make it from what `as_dict` gave, in a process that trusts the one that did."""
        options = tuple(
            Option(name, tuple(map(_from_json, values)), description, per_file)
            for name, values, description, per_file in value["options"]
        )
        return cls(value["filesystem"], options, value["is_single"])


def _as_json(value: OptionValue) -> int | float | str:
    return value.hex() if isinstance(value, bytes) else value


def _from_json(value: int | float | str) -> OptionValue:  # noqa: PYI041  (both occur)
    return bytes.fromhex(value) if isinstance(value, str) else value
