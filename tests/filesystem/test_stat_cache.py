"""The cache of what was found at paths."""

from __future__ import annotations

import pytest

from modular_tf.filesystem import stat_cache
from modular_tf.filesystem.stat_cache import StatCache


@pytest.fixture
def clock(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(stat_cache, "monotonic", lambda: now[0])
    return now


def test_an_entry_counts_for_some_seconds(clock):
    cache = StatCache[int](60)
    cache.put("xx://b/f", 7, cache.version)
    clock[0] += 59
    assert (cache.get("xx://b/f"), cache.get("xx://b/f", 1)) == (7, None)
    clock[0] += 2
    assert cache.get("xx://b/f") is None
    assert StatCache[int](0).get("xx://b/f") is None


@pytest.mark.parametrize("change", [lambda c: c.forget("xx://b/f"), lambda c: c.clear()])
def test_a_change_forgets_what_was_found_before_it(change):
    cache = StatCache[int](60)
    before = cache.version
    cache.put("xx://b/f", 7, before)
    change(cache)
    assert cache.get("xx://b/f") is None
    cache.put("xx://b/f", 7, before)  # by a call that the change has overtaken
    assert cache.get("xx://b/f") is None
    cache.put("xx://b/f", 7, cache.version)
    assert cache.get("xx://b/f") == 7


def test_only_so_many_entries_are_kept():
    cache = StatCache[int](60, most=3)
    for number in range(10):
        cache.put(number, number, cache.version)
    assert cache.get(9) == 9
    assert sum(cache.get(number) is not None for number in range(10)) <= 3
