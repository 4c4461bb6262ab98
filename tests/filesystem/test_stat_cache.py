"""The cache of what was found at paths; `tests.wild` shows what changes do to it."""

from __future__ import annotations

from modular_tf.filesystem import stat_cache
from modular_tf.filesystem.stat_cache import StatCache


def test_what_changes_during_a_look_is_not_kept():
    cache = StatCache[int](60, most=3)
    version = cache.version
    cache.forget("path")
    cache.put("path", 1, version)
    assert cache.get("path") is None


def test_so_many_entries_are_kept_for_some_seconds(monkeypatch):
    now = [1000.0]
    monkeypatch.setattr(stat_cache, "monotonic", lambda: now[0])
    cache = StatCache[int](60, most=3)
    for number in range(10):
        cache.put(number, number, cache.version)
    assert cache.get(9) == 9
    assert sum(cache.get(number) is not None for number in range(10)) <= 3
    now[0] += 59
    assert (cache.get(9), cache.get(9, 1)) == (9, None)
    now[0] += 2
    assert cache.get(9) is None
