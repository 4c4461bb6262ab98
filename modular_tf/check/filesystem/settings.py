"""Checks of a filesystem's configuration."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from modular_tf.abi.status_codes import Code
from modular_tf.check.answers import code_found
from modular_tf.check.check import NOTE, RAW, Suite
from modular_tf.check.expectation import Unsupported, advise, expect, expect_equal, note
from modular_tf.check.filesystem.further_ground import raw_subject
from modular_tf.filesystem.configuration import Option

if TYPE_CHECKING:
    from modular_tf.check.filesystem.ground import FilesystemGround
    from modular_tf.check.filesystem.host_subject import HostFilesystem
    from modular_tf.check.filesystem.raw_subject import RawFilesystem

suite = Suite("filesystem", "settings", source="filesystem.h")

_GET, _SET = "get_filesystem_configuration", "set_filesystem_configuration"
_GET_ONE, _SET_ONE = f"{_GET}_option", f"{_SET}_option"
_UNKNOWN = "no_option_of_this_name"


@suite.check("FS-309", "get_filesystem_configuration")
def options_are_whole(fs: FilesystemGround) -> None:
    """get_filesystem_configuration gives whole options: name, value, type, count, values.

    Otherwise: A program that lists the options crashes.
    Remedy: Fill every field, and allocate each pointer by plugin_memory_allocate.
    """
    options = _all_listed(fs)
    names = [option.name for option in options]
    expect("" not in names, "an option has no name")
    expect_equal(len(set(names)), len(names), "the number of different names")


@suite.check("FS-310", "get_filesystem_configuration", "set_filesystem_configuration")
def options_can_be_set(fs: FilesystemGround) -> None:
    """set_filesystem_configuration takes what the plugin gave, and no options at all.

    Otherwise: A configuration that was saved cannot be restored.
    Remedy: Accept every option that get_filesystem_configuration lists, with its own value.
    """
    subject, options = _subject(fs), _listed(fs)
    subject.set_filesystem_configuration(options).must_be_ok()
    subject.set_filesystem_configuration([]).must_be_ok()
    expect_equal(_listed(fs), options, "the configuration, after it was set to itself")
    unknown = subject.set_filesystem_configuration([Option(_UNKNOWN, (1,))])
    advise(not unknown.ok, f"{_SET} takes an option that it does not know")
    for option in options[:1]:
        other = subject.set_filesystem_configuration([_of_another_type(option)])
        advise(not other.ok, f"{_SET} takes {option.name} with values of another type")


@suite.check("FS-311", "get_filesystem_configuration", "get_filesystem_configuration_option")
def options_are_found_by_name(fs: FilesystemGround) -> None:
    """Single options are found by the names that the configuration lists, others are not.

    Otherwise: Options are listed that cannot be read or set.
    Remedy: Answer a key that is not listed with NOT_FOUND, and every other one with the option.
    """
    subject = _subject(fs)
    sets = subject.has(_SET_ONE)
    for option in _listed(fs):
        found = subject.get_filesystem_configuration_option(option.name).must_be_ok()
        expect_equal(found, option, f"the option {option.name}, asked for by its name")
        if sets:
            subject.set_filesystem_configuration_option(option).must_be_ok()
    subject.get_filesystem_configuration_option(_UNKNOWN).must_be(Code.NOT_FOUND)
    if sets:
        subject.set_filesystem_configuration_option(Option(_UNKNOWN, (1,))).must_be(Code.NOT_FOUND)


@suite.check("FS-312", "get_filesystem_configuration", "set_filesystem_configuration", ways=RAW)
def options_are_copied(fs: FilesystemGround) -> None:
    """The plugin keeps copies of the options that it is given.

    Otherwise: The caller's memory is reused, and the option changes by itself or crashes.
    Remedy: Copy names, values and buffers.
    """
    subject, options = raw_subject(fs), _listed(fs)
    for option in options:
        answer = subject.set_filesystem_configuration([option])
        expect(answer.ok, f"{_SET} refuses {option.name}", found=code_found(answer))
    expect_equal(_listed(fs), options, "the configuration, after the caller's memory changed")


@suite.check("FS-313", ways=RAW, severity=NOTE)
def keys_are_not_offered(fs: FilesystemGround) -> None:
    """get_filesystem_configuration_keys is NULL.

    Otherwise: No host calls it: its signature does not say who allocates the keys, nor how many.
    Remedy: Leave it NULL; get_filesystem_configuration lists the names.
    """
    if fs.subject.has("get_filesystem_configuration_keys"):
        note("get_filesystem_configuration_keys is set, which no host can call")


def _subject(fs: FilesystemGround) -> RawFilesystem | HostFilesystem:
    return cast("RawFilesystem | HostFilesystem", fs.subject)


def _listed(fs: FilesystemGround) -> list[Option]:
    """Return the options.

    Raises:
        Deviation: They cannot be listed.
        Unsupported: There are none.
    """
    options = _all_listed(fs)
    if not options:
        raise Unsupported("there are no options")
    return options


def _all_listed(fs: FilesystemGround) -> list[Option]:
    """Return the options, of which there may be none.

    Raises:
        Deviation: They cannot be listed.
    """
    answer = _subject(fs).get_filesystem_configuration()
    options: list[Option] = answer.must_be_ok()
    number = answer.returned
    if number is not None:  # through the slot
        expect(number >= 0, f"{_GET} returns a negative count", found=str(number))
        expect_equal(len(options), number, "the number of options in the array")
    return options


def _of_another_type(option: Option) -> Option:
    is_text = option.values and isinstance(option.values[0], bytes)
    return replace(option, values=(7,) if is_text else (b"seven",))
