"""Neither a RECORD nor the libraries that it lists are read again before they change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.codec import encode
from modular_tf.discovery import file_identity
from modular_tf.rules.shortage import ShortageError
from modular_tf.service.storage.scan_cache import ScanCache

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def all_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let files count as old that were written right now."""
    monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", -3_600_000_000_000)


class _Distribution:
    """A distribution whose RECORD lists one path in each line, and what was read of it."""

    def __init__(self, folder: Path) -> None:
        self.record = folder / "RECORD"
        self.plugin, self.other = folder / "liba.so", folder / "libb.so"
        self.plugin.write_bytes(b"plugin")
        self.other.write_bytes(b"other")
        self.record.write_text(f"{self.plugin}\n{self.other}\n")
        self.read: list[str] = []

    def _libraries(self) -> list[str]:
        self.read.append("RECORD")
        return self.record.read_text().splitlines()

    def _is_plugin(self, path: str) -> bool | None:
        self.read.append(Path(path).name)
        try:
            return Path(path).read_bytes() == b"plugin"
        except OSError:
            return None

    def plugins(self, cache: ScanCache | None = None) -> list[str]:
        """Return the names of the plugins, as a new process gets them."""
        self.read.clear()
        asked = cache or ScanCache.of_process()
        found = asked.installed_plugins(str(self.record), self._libraries, self._is_plugin)
        asked.save()
        return [Path(path).name for path in found]


@pytest.fixture
def distribution(tmp_path: Path) -> _Distribution:
    return _Distribution(tmp_path)


@pytest.mark.usefixtures("all_is_settled")
def test_what_is_unchanged_is_read_once(distribution: _Distribution):
    assert distribution.plugins() == ["liba.so"]
    assert distribution.read == ["RECORD", "liba.so", "libb.so"]

    assert distribution.plugins() == ["liba.so"]
    assert distribution.read == []


@pytest.mark.usefixtures("all_is_settled")
def test_a_library_that_becomes_a_plugin_is_one(distribution: _Distribution):
    distribution.plugins()
    distribution.other.write_bytes(b"plugin")

    assert distribution.plugins() == ["liba.so", "libb.so"]
    assert distribution.read == ["libb.so"]
    assert distribution.plugins() == ["liba.so", "libb.so"]
    assert distribution.read == []


@pytest.mark.usefixtures("all_is_settled")
def test_a_plugin_that_becomes_another_library_is_none(distribution: _Distribution):
    distribution.plugins()
    distribution.plugin.write_bytes(b"other")

    assert distribution.plugins() == []
    assert distribution.read == ["liba.so"]


@pytest.mark.usefixtures("all_is_settled")
def test_a_record_that_changed_is_read_again(distribution: _Distribution):
    distribution.plugins()
    distribution.record.write_text(f"{distribution.other}\n")

    assert distribution.plugins() == []
    assert distribution.read == ["RECORD"]  # the library is the same


@pytest.mark.usefixtures("all_is_settled")
def test_a_distribution_without_a_record_has_none(tmp_path: Path):
    cache = ScanCache.of_process()
    record = str(tmp_path / "RECORD")
    assert cache.installed_plugins(record, list, bool) == []
    (tmp_path / "RECORD").write_text("")
    assert cache.installed_plugins(record, lambda: ["/x/liba.so"], bool) == ["/x/liba.so"]


@pytest.mark.usefixtures("all_is_settled")
def test_a_library_that_cannot_be_read_is_read_again(distribution: _Distribution):
    distribution.other.unlink()
    assert distribution.plugins() == ["liba.so"]
    assert distribution.plugins() == ["liba.so"]
    assert distribution.read == ["libb.so"]
    distribution.other.write_bytes(b"plugin")

    assert distribution.plugins() == ["liba.so", "libb.so"]


@pytest.mark.usefixtures("all_is_settled")
def test_a_record_that_cannot_be_read_is_reported_each_time(distribution: _Distribution):
    def refuse() -> list[str]:
        raise PermissionError(13, "Permission denied")

    cache = ScanCache.of_process()
    for _ in range(2):
        with pytest.raises(PermissionError):
            cache.installed_plugins(str(distribution.record), refuse, bool)


@pytest.mark.usefixtures("all_is_settled")
def test_a_shortage_keeps_nothing(distribution: _Distribution):
    cache = ScanCache.of_process()

    def fail(path: str) -> bool:
        raise ShortageError("too many open files", path=path)

    with pytest.raises(ShortageError):
        cache.installed_plugins(str(distribution.record), lambda: [str(distribution.other)], fail)

    assert distribution.plugins(cache) == ["liba.so"]
    assert distribution.read == ["RECORD", "liba.so", "libb.so"]


def test_files_that_were_written_right_now_are_read_again(distribution: _Distribution):
    distribution.plugins()
    distribution.plugins()

    assert distribution.read == ["RECORD", "liba.so", "libb.so"]


@pytest.mark.usefixtures("all_is_settled")
def test_a_record_that_changes_while_it_is_read_is_not_kept(distribution: _Distribution):
    cache = ScanCache.of_process()

    def libraries() -> list[str]:
        before = distribution.record.read_text().splitlines()
        distribution.record.write_text(f"{distribution.plugin}\n")
        return before

    cache.installed_plugins(str(distribution.record), libraries, lambda _: False)

    assert distribution.plugins(cache) == ["liba.so"]
    assert distribution.read[0] == "RECORD"


_SEEN = ["/RECORD", [1, 2, 3, 4, 5], None, 1, ""]


def _is_found_beside(damage: Callable[[str], object], distribution: _Distribution) -> bool:
    cache = ScanCache.of_process()
    record = str(distribution.record)
    cache._distributions.put(record, json.dumps(damage(str(distribution.plugin))))
    return distribution.plugins(cache) == ["liba.so"]


@pytest.mark.usefixtures("all_is_settled")
@pytest.mark.parametrize(
    "value",
    [1, [], "x", [_SEEN], [_SEEN, 1], [_SEEN, [1]], [_SEEN, [[]]], [_SEEN, [[1]]], [[None], []]],
)
def test_what_is_damaged_says_nothing(value: object, distribution: _Distribution):
    assert _is_found_beside(lambda _: value, distribution)


@pytest.mark.usefixtures("all_is_settled")
@pytest.mark.parametrize(
    "row",
    [[], [0], [False], [1, _SEEN], [False, [None, None, 1, ""]], [False, _SEEN], [False, None]],
)
def test_what_is_damaged_says_nothing_of_a_library(row: list[object], distribution: _Distribution):
    seen = file_identity.see(str(distribution.record), read=False)
    assert seen is not None
    rows = [encode(seen)]
    assert _is_found_beside(lambda plugin: [*rows, [[plugin, *row]]], distribution)
