"""The user's settings of trust: the table `[trust]` of the configuration."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from modular_tf.discovery.sources.search_paths import NO_HOME, expand_home
from modular_tf.rules.keys import Key, checked_table, flag, keys_of, list_of, setting

if TYPE_CHECKING:
    from modular_tf.discovery.file_identity import SeenFile
    from modular_tf.rules import Violation

LOCK_FILE_NAME = "modular-tf.lock"


def _is_name(value: Any) -> bool:
    return isinstance(value, str) and bool(value) and "\0" not in value


_OWNERS = list_of(
    "a list of names and numbers", lambda value: type(value) is int or _is_name(value)
)
_PATHS = list_of("a list of paths", _is_name)


@dataclass(frozen=True, slots=True)
class TrustPolicy:
    """The settings of trust, besides root and this process's user. It pickles.

    Attributes:
        owners: Users, by name or number, whose files and directories are as good as root's.
        groups: Groups, by name or number, whose members may write to plugins.
        allow_writable: Globs over paths of files and directories that anybody may write to. A `*`
            matches slashes as well.
        allow_executable_stack: Globs over paths of libraries that may ask for an executable stack.
        require_record: Whether a plugin needs a hash in its distribution's RECORD.
        frozen: Whether a plugin needs to be in the lock file.
        lock: The lock file; None for the one beside the configuration file.
    """

    owners: tuple[str | int, ...] = setting((), _OWNERS)
    groups: tuple[str | int, ...] = setting((), _OWNERS)
    allow_writable: tuple[str, ...] = setting((), _PATHS)
    allow_executable_stack: tuple[str, ...] = setting((), _PATHS)
    require_record: bool = setting(key=flag(), default=False)
    frozen: bool = setting(key=flag("MODULAR_TF_FROZEN"), default=False)
    lock: str | None = setting(None, Key("a path", _is_name))


def parse_policy(value: Any, base: str) -> TrustPolicy:
    """Return the policy in a table of TOML; relative paths in it start from `base`.

    Raises `ValueError` if it is no table, or a key is unknown or of the wrong shape.
    """
    checked = checked_table(keys_of(TrustPolicy), value, "trust")
    for name in checked.keys() & {"allow_writable", "allow_executable_stack"}:
        checked[name] = tuple(_from(base, glob) for glob in checked[name])
    if "lock" in checked:
        checked["lock"] = _from(base, checked["lock"])
    return TrustPolicy(**checked)


def _from(base: str, path: str) -> str:
    expanded = expand_home(path)
    if expanded is None:
        raise ValueError(f"trust: {path!r} is below the home directory, but {NO_HOME}")
    return os.path.normpath(os.path.join(os.path.abspath(base), expanded))


def default_lock_path(config_path: str | None) -> str | None:
    """Return the default path of the lock file: beside the configuration file, if any."""
    if config_path is None:
        return None
    return os.path.join(os.path.dirname(os.path.abspath(config_path)), LOCK_FILE_NAME)


class TrustVerdict(NamedTuple):
    """Whether a plugin may be opened, and by which rule that was decided.

    The files that were judged are `checked`, as they were then: what is mapped has to be the same.
    There is none if the plugin is refused, or if there is no file, which the probe reports.
    """

    rule: str
    message: str  # one sentence without a full stop
    refused: Violation | None = None  # None if the plugin may be opened
    checked: tuple[SeenFile, ...] = ()
    remarks: tuple[str, ...] = ()  # what could not be compared; `message` ends with it

    @property
    def accepted(self) -> bool:
        """Whether the plugin may be opened."""
        return self.refused is None

    @classmethod
    def of_problem(cls, problem: Violation) -> TrustVerdict:
        """Return the refusal for a broken rule."""
        return cls(problem.rule_id, problem.message, problem)

    def on(self, checked: tuple[SeenFile, ...]) -> TrustVerdict:
        """Return the same verdict with these files as `checked`."""
        return TrustVerdict(self.rule, self.message, self.refused, checked, self.remarks)

    def remark(self, *remarks: str) -> TrustVerdict:
        """Return the same verdict with other remarks, if there are any."""
        if not remarks:
            return self
        message = "; ".join((self.message, *remarks))
        return self._replace(message=message, remarks=(*self.remarks, *remarks))

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON knows the reason of a refused plugin, accepts as well."""
        return {
            "stage": "trust",
            "rule": self.rule,
            "message": self.message,
            "remedy": self.refused.remedy if self.refused else None,
        }
