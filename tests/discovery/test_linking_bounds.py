"""LD-096: a file that was made so cannot keep a probe busy with what it needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from modular_tf.discovery.linking import link_check
from modular_tf.discovery.linking.library_search import LibrarySearch
from tests.discovery.conftest import make_candidate
from tests.discovery.elf_builder import ElfBuilder

if TYPE_CHECKING:
    from modular_tf.discovery.elf import ElfFile
    from modular_tf.discovery.probe import Probe, Prober


def rules_of(result: Probe) -> list[str]:
    return [problem.rule for problem in result.problems]


def test_a_plugin_that_needs_too_many_libraries_is_refused_without_a_search(
    tmp_path: Path, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "libx.so"
    path.write_bytes(ElfBuilder(needed=tuple(f"none{at:x}" for at in range(60_000))).build())
    looked = looks(monkeypatch)

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-096"]
    assert result.problems[0].message == "linking libx.so takes more than 1024 libraries"
    assert [place for place in looked if Path(place).name.startswith("none")] == []


def test_companions_count_for_the_bound(tmp_path: Path, prober: Prober) -> None:
    """Each of a chain needs one more, and all those that are not there."""
    for at in range(3):
        needed = (f"lib{at + 1}.so", *(f"z{at}-{n}" for n in range(400)))
        built = ElfBuilder(needed=needed, paths={"rpath": "$ORIGIN"}).build()
        (tmp_path / f"lib{at}.so").write_bytes(built)

    result = prober.probe(make_candidate(tmp_path / "lib0.so"))

    assert rules_of(result) == ["LD-096"]


@pytest.mark.parametrize("name", ["lib0.so", "absent{at}-{n}.so"])
def test_filters_count_for_the_bound(name: str, tmp_path: Path, prober: Prober) -> None:
    """The linker goes on without those that are absent, and moves those that it has already."""
    for at in range(30):
        built = ElfBuilder(
            needed=(f"lib{at + 1}.so",) if at < 29 else (),
            filters=tuple((0x7FFFFFFD, name.format(at=at, n=n)) for n in range(1000)),
            paths={"rpath": "$ORIGIN"} if at == 0 else {},
            tags={0x6FFFFFFB: 0x800},  # -z nodefaultlib: there are few places to search
        ).build()
        (tmp_path / f"lib{at}.so").write_bytes(built)

    result = prober.probe(make_candidate(tmp_path / "lib0.so"))

    assert rules_of(result) == ["LD-096"]
    assert "a search in more than 16384 places" in result.problems[0].message


@pytest.mark.parametrize("tag", ["rpath", "runpath"])
def test_a_plugin_that_searches_too_many_places_is_refused(
    tag: str, tmp_path: Path, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "libx.so"
    long = ":".join(f"/{at:x}" for at in range(10_000))
    built = ElfBuilder(needed=("libc.so.6", "liba.so", "libb.so"), paths={tag: long})
    path.write_bytes(built.build())
    looked = looks(monkeypatch)

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-096"]
    assert "a search in more than 16384 places" in result.problems[0].message
    assert len([place for place in looked if "lib" in place]) < 17_000


def test_a_plugin_that_asks_too_many_libraries_for_too_many_symbols_is_refused(
    tmp_path: Path, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "libx.so"
    built = ElfBuilder(needed=(), undefined=tuple(f"u{at}" for at in range(1000)))
    path.write_bytes(built.build())
    assert rules_of(prober.probe(make_candidate(path))) == ["LD-014"]
    monkeypatch.setattr(link_check, "_MAX_LOOK_UPS", 1000)

    result = prober.probe(make_candidate(path))

    assert rules_of(result) == ["LD-096"]
    assert result.missing_symbols == ()


def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the paths at which libraries are looked for, as they come."""
    found: list[str] = []
    look = LibrarySearch._open

    def noted(search: LibrarySearch, path: str) -> ElfFile | None:
        found.append(path)
        return look(search, path)

    monkeypatch.setattr(LibrarySearch, "_open", noted)
    return found
