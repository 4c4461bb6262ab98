"""Neither a RECORD nor the libraries that it lists are read again before they change."""

import json
from pathlib import Path

import pytest

from modular_tf.discovery import file_identity
from modular_tf.service.storage.scan_cache import ScanCache

EVERYTHING = ["RECORD", "liba.so", "libb.so"]


@pytest.fixture
def all_is_settled(monkeypatch):
    """Have files count as old that were written right now."""
    monkeypatch.setattr(file_identity, "SETTLED_AFTER_NS", -3_600_000_000_000)


class _Distribution:
    """A distribution whose RECORD lists one path in each line, and what was read of it."""

    def __init__(self, folder):
        self.record = folder / "RECORD"
        self.plugin, self.other = folder / "liba.so", folder / "libb.so"
        self.plugin.write_bytes(b"plugin")
        self.other.write_bytes(b"other")
        self.record.write_text(f"{self.plugin}\n{self.other}\n")
        self.read = []

    def _libraries(self):
        self.read.append("RECORD")
        return self.record.read_text().splitlines()

    def _is_plugin(self, path):
        self.read.append(Path(path).name)
        try:
            return Path(path).read_bytes() == b"plugin"
        except OSError:
            return None

    def ask(self, cache=None):
        """Return the names of the plugins, as a new process gets them, and what it read."""
        self.read.clear()
        cache = cache or ScanCache.of_process()
        found = cache.installed_plugins(str(self.record), self._libraries, self._is_plugin)
        cache.save()
        return [Path(path).name for path in found], self.read


@pytest.fixture
def distribution(tmp_path):
    return _Distribution(tmp_path)


def test_files_that_were_written_right_now_are_read_again(distribution):
    for _ in range(2):
        assert distribution.ask() == (["liba.so"], EVERYTHING)


@pytest.mark.usefixtures("all_is_settled")
def test_what_is_unchanged_is_read_once(distribution):
    assert distribution.ask() == (["liba.so"], EVERYTHING)
    assert distribution.ask() == (["liba.so"], [])

    distribution.other.write_bytes(b"plugin")
    assert distribution.ask() == (["liba.so", "libb.so"], ["libb.so"])
    assert distribution.ask() == (["liba.so", "libb.so"], [])

    distribution.plugin.write_bytes(b"other")
    assert distribution.ask() == (["libb.so"], ["liba.so"])

    distribution.record.write_text(f"{distribution.plugin}\n")
    assert distribution.ask() == ([], ["RECORD"])  # the library is the same


@pytest.mark.usefixtures("all_is_settled")
def test_a_distribution_without_a_record_has_none(tmp_path):
    cache = ScanCache.of_process()
    record = str(tmp_path / "RECORD")
    assert cache.installed_plugins(record, list, bool) == []
    (tmp_path / "RECORD").write_text("")
    assert cache.installed_plugins(record, lambda: ["/x/liba.so"], bool) == ["/x/liba.so"]


@pytest.mark.usefixtures("all_is_settled")
def test_a_library_that_cannot_be_read_is_read_again(distribution):
    distribution.other.unlink()
    assert distribution.ask() == (["liba.so"], EVERYTHING)
    assert distribution.ask() == (["liba.so"], ["libb.so"])
    distribution.other.write_bytes(b"plugin")

    assert distribution.ask() == (["liba.so", "libb.so"], ["libb.so"])


@pytest.mark.usefixtures("all_is_settled")
def test_a_record_that_changes_while_it_is_read_is_not_stored(distribution):
    cache = ScanCache.of_process()

    def libraries():
        before = distribution.record.read_text().splitlines()
        distribution.record.write_text(f"{distribution.plugin}\n")
        return before

    cache.installed_plugins(str(distribution.record), libraries, lambda _: False)

    plugins, read = distribution.ask(cache)
    assert plugins == ["liba.so"]
    assert read[0] == "RECORD"


_SEEN = ["/RECORD", [1, 2, 3, 4, 5], None, 1, ""]


@pytest.mark.usefixtures("all_is_settled")
@pytest.mark.parametrize(
    "value", [1, [], [_SEEN], [_SEEN, 1], [_SEEN, [[]]], [_SEEN, [["/x", 1, _SEEN]]], [[None], []]]
)
def test_what_is_damaged_says_nothing(value, distribution):
    cache = ScanCache.of_process()
    cache._distributions.put(str(distribution.record), json.dumps(value))

    assert distribution.ask(cache)[0] == ["liba.so"]
