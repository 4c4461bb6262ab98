"""Transactions and configuration of a raw filesystem."""

from __future__ import annotations

import pytest

from modular_tf.abi.status_codes import Code
from modular_tf.check.expectation import Unsupported
from modular_tf.filesystem.configuration import Option
from tests.check.subjects.conftest import FILE


def test_a_transaction_holds_its_paths(raw_filesystem):
    filesystem = raw_filesystem()
    started = filesystem.start_transaction()
    token = started.value

    assert started.ok
    assert token != 0
    assert filesystem.add_to_transaction(FILE, token).ok
    assert filesystem.get_transaction_for_path(FILE).value == token
    assert filesystem.get_or_start_transaction_for_path(FILE).value == token
    assert filesystem.decode_transaction_token(token).value
    assert filesystem.end_transaction(token).ok


def test_a_path_without_a_transaction_has_none(raw_filesystem):
    answer = raw_filesystem().get_transaction_for_path(FILE)

    assert (answer.code, answer.returned, answer.value) == (Code.NOT_FOUND, -1, 0)


def test_options_are_copied(raw_filesystem):
    answer = raw_filesystem().get_filesystem_configuration()

    assert answer.ok
    assert answer.returned == len(answer.value) > 0
    assert all(option.name for option in answer.value)


def test_an_option_that_is_set_is_the_plugins_own_copy(raw_filesystem):
    filesystem = raw_filesystem()
    option = filesystem.get_filesystem_configuration().value[0]
    changed = Option(option.name, tuple(type(value)(7) for value in option.values))

    assert filesystem.set_filesystem_configuration([changed]).ok
    assert filesystem.get_filesystem_configuration_option(option.name).value.name == option.name
    assert filesystem.set_filesystem_configuration_option(changed).ok
    found = filesystem.get_filesystem_configuration_option(option.name).value
    assert found.values == changed.values


def test_an_option_that_nobody_knows_is_none(raw_filesystem):
    answer = raw_filesystem().get_filesystem_configuration_option("nobody's")

    assert answer.code == Code.NOT_FOUND
    assert answer.value is None


def test_without_the_slots_nothing_is_supported(raw_filesystem):
    filesystem = raw_filesystem("filesystem-size-176")

    with pytest.raises(Unsupported, match="start_transaction"):
        filesystem.start_transaction()
    with pytest.raises(Unsupported, match="get_filesystem_configuration"):
        filesystem.get_filesystem_configuration()
