"""Names that the plugin does not even translate have not been tried."""

from __future__ import annotations

import random

import pytest

from modular_tf.check.expectation import Blocked
from modular_tf.check.filesystem.every_call import names_in_missing_containers_are_refused
from modular_tf.check.filesystem.workspace import FilesystemWorkspace


class _Untranslated:
    def offers(self, slot):
        return True

    def call(self, slot, *arguments):
        raise Blocked(f"translate_name({arguments[0]!r}) returned NULL")


def test_names_that_are_not_translated_block_the_check():
    fs = FilesystemWorkspace(_Untranslated(), "s://host/run/check", None, random.Random(0))

    with pytest.raises(Blocked, match="returned NULL"):
        names_in_missing_containers_are_refused(fs)
