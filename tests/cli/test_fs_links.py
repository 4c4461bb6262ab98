"""Where a copy arrives whose source is spelt with dots."""

from __future__ import annotations

import pytest


def below(folder):
    """Return the files below a directory that are no links, by name."""
    found = sorted(folder.rglob("*"))
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in found
        if path.is_file() and not path.is_symlink()
    }


@pytest.mark.parametrize("source", [".", "..", "../", "sub/..", "sub/."])
def test_what_is_in_a_dotted_source_arrives_in_the_target(mtf, tmp_path, monkeypatch, source):
    for name in ("src/at/sub/b.txt", "src/at/a.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "out").mkdir()
    monkeypatch.chdir(tmp_path / "src" / "at")
    before = below(tmp_path / "src")
    ended = mtf("fs", "cp", "-r", source, tmp_path / "out")

    expected = before if source.startswith("..") else below(tmp_path / "src" / "at" / source)
    assert ended.code == 0
    assert below(tmp_path / "out") == expected
    assert below(tmp_path / "src") == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "src"]
