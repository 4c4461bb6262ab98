"""Checks of a filesystem's configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found, expect_code, expect_ok
from modular_tf.check.check import RAW, CheckList
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.further_ground import raw_subject
from modular_tf.check.level import Level
from modular_tf.filesystem.configuration import Option

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.hosted import HostFilesystem
    from modular_tf.check.filesystem.raw_subject import RawFilesystem

CHECKS = CheckList("filesystem", "settings")

_GET, _SET = "get_filesystem_configuration", "set_filesystem_configuration"
_GET_ONE, _SET_ONE = f"{_GET}_option", f"{_SET}_option"
_UNKNOWN = "no_option_of_this_name"


@CHECKS.check("FS-309", Level.WORKS, needs=(_GET,), rows=(209,))
def options_are_whole(ground: FilesystemGround) -> None:
    """List them; each must have a name of its own, and all of it is freed."""
    options = _all_listed(ground)
    names = [option.name for option in options]
    expect("" not in names, "an option has no name")
    expect_equal(len(set(names)), len(names), "the number of different names")


@CHECKS.check("FS-310", Level.WORKS, needs=(_GET, _SET), rows=(210,))
def options_can_be_set(ground: FilesystemGround) -> None:
    """Set what is there, and nothing; then an unknown name, and another type."""
    subject, options = _subject(ground), _listed(ground)
    expect_ok(subject.set_filesystem_configuration(options), f"{_SET} with its own options")
    expect_ok(subject.set_filesystem_configuration([]), f"{_SET} without options")
    expect_equal(_listed(ground), options, "the configuration, after it was set to itself")
    unknown = subject.set_filesystem_configuration([Option(_UNKNOWN, (1,))])
    advise(not unknown.ok, f"{_SET} takes an option that it does not know")
    for option in options[:1]:
        other = subject.set_filesystem_configuration([_of_another_type(option)])
        advise(not other.ok, f"{_SET} takes {option.name} with values of another type")


@CHECKS.check("FS-311", Level.WORKS, needs=(_GET, _GET_ONE), rows=(211,))
def options_are_found_by_name(ground: FilesystemGround) -> None:
    """Get each by its name, and set it; then an unknown one."""
    subject = _subject(ground)
    sets = subject.has(_SET_ONE)
    for option in _listed(ground):
        found = expect_ok(
            subject.get_filesystem_configuration_option(option.name), f"{_GET_ONE}({option.name})"
        )
        expect_equal(found, option, f"the option {option.name}, asked for by its name")
        if sets:
            answer = subject.set_filesystem_configuration_option(option)
            expect_ok(answer, f"{_SET_ONE}({option.name})")
    answer = subject.get_filesystem_configuration_option(_UNKNOWN)
    expect_code(answer, f"{_GET_ONE}({_UNKNOWN})", Code.NOT_FOUND)
    if sets:
        answer = subject.set_filesystem_configuration_option(Option(_UNKNOWN, (1,)))
        expect_code(answer, f"{_SET_ONE}({_UNKNOWN})", Code.NOT_FOUND)


@CHECKS.check("FS-312", Level.WORKS, passes=RAW, needs=(_GET, _SET), rows=(212,))
def options_are_copied(ground: FilesystemGround) -> None:
    """Set options one by one in memory that is overwritten after each call."""
    subject, options = raw_subject(ground), _listed(ground)
    for option in options:
        answer = subject.set_filesystem_configuration([option])
        expect(answer.ok, f"{_SET} refuses {option.name}", found=code_found(answer))
    expect_equal(_listed(ground), options, "the configuration, after the caller's memory changed")


@CHECKS.check("FS-313", Level.WORKS, passes=RAW, rows=(213,))
def keys_are_not_offered(ground: FilesystemGround) -> None:
    """Look whether the slot is set; it is not called."""
    if ground.subject.has("get_filesystem_configuration_keys"):
        note("get_filesystem_configuration_keys is set, which no host can call")


def _subject(ground: FilesystemGround) -> RawFilesystem | HostFilesystem:
    return cast("RawFilesystem | HostFilesystem", ground.subject)


def _listed(ground: FilesystemGround) -> list[Option]:
    """Return the options.

    Raises:
        Deviation: They cannot be listed.
        Unsupported: There are none.
    """
    options = _all_listed(ground)
    if not options:
        raise Unsupported("there are no options")
    return options


def _all_listed(ground: FilesystemGround) -> list[Option]:
    """Return the options, of which there may be none.

    Raises:
        Deviation: They cannot be listed.
    """
    answer = _subject(ground).get_filesystem_configuration()
    options: list[Option] = expect_ok(answer, _GET)
    number = answer.returned
    if number is not None:  # through the slot
        expect(number >= 0, f"{_GET} returns a negative count", found=str(number))
        expect_equal(len(options), number, "the number of options in the array")
    return options


def _of_another_type(option: Option) -> Option:
    is_text = option.values and isinstance(option.values[0], bytes)
    return replace(option, values=(7,) if is_text else (b"seven",))
