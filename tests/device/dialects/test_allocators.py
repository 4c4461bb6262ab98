"""The allocators of the RFC of 2020-09-08: one of two kinds, kept and not called yet."""

from __future__ import annotations

import pytest

from modular_tf.abi.layouts import Dialect
from tests.device.dialects.building import Build, DialectPlugin

RFC = Dialect.DEVICE_RFC


def build(allocator, *, sizes=True, form="FILLS"):
    return DialectPlugin(Build(RFC, sizes, form, {"ALLOCATOR": allocator}))


def slots(plugin):
    with plugin.load() as platform:
        return platform.tables.create_allocator, platform.tables.create_custom_allocator


@pytest.mark.parametrize("form", ["FILLS", "ASSIGNS", "SAVED", "OWN"])
@pytest.mark.parametrize("sizes", [True, False])
class TestReachable:
    def test_none(self, sizes, form):
        assert slots(build("NONE", sizes=sizes, form=form)) == (None, None)

    def test_a_plain_one(self, sizes, form):
        plugin = build("PLAIN", sizes=sizes, form=form)
        assert slots(plugin) == (plugin.library.symbol("fns_create_allocator"), None)

    def test_a_custom_one(self, sizes, form):
        plugin = build("CUSTOM", sizes=sizes, form=form)
        assert slots(plugin) == (None, plugin.library.symbol("fns_create_custom_allocator"))


def test_no_allocator_is_created_while_loading():
    plugin = build("PLAIN")
    with plugin.load() as platform:
        platform.device_details(0)
    assert not any("allocator" in call for call in plugin.calls)


@pytest.mark.parametrize("sizes", [True, False])
def test_two_of_them_are_refused(sizes):
    plugin = build("BOTH", sizes=sizes)
    error = plugin.refusal()
    assert error.rule == "SE-034"
    assert plugin.calls == ["init", "destroy_platform", "destroy_platform_fns"]


def test_one_that_cannot_be_destroyed_is_not_offered():
    plugin = build("HALF")
    with plugin.load() as platform:
        assert [found.rule_id for found in platform.warnings] == ["SE-035"]
    assert slots(plugin) == (None, None)


def test_other_dialects_have_none():
    assert slots(DialectPlugin(Build(Dialect.DEVICE_V209))) == (None, None)
