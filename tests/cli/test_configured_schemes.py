"""Commands use what `[filesystems]` of the configuration names."""

import zipfile

import pytest


@pytest.fixture
def archive(tmp_path, monkeypatch):
    """A configuration by which `archive` is a file of zip."""
    file, config = tmp_path / "a.zip", tmp_path / "c.toml"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("folder/file", "content")
    named = f'archive = {{fsspec = "zip", fo = "{file}"}}\nlake = {{object = "nowhere:fs"}}\n'
    config.write_text(f"[filesystems]\n{named}")
    monkeypatch.setenv("MODULAR_TF_CONFIG", str(config))
    return config


def test_it_is_listed_with_its_origin(mtf, archive):
    assert "archive\tfsspec.zip" in mtf("schemes").lines
    records = {record["name"]: record for record in mtf("list", "--json").object["plugins"]}
    assert records["fsspec.zip"]["source"] == "configuration"
    assert records["fsspec.zip"]["schemes"] == ["archive"]
    assert "scheme 'archive' is served by fsspec.zip" in mtf("why", "archive").lines
    settings = {row["key"]: row for row in mtf("paths", "--json").object["settings"]}
    assert set(settings["filesystems"]["value"]) == {"archive", "lake"}
    assert settings["filesystems"]["origin"] == str(archive)


def test_what_cannot_be_made_fails_its_own_commands_only(mtf, archive):
    failed = mtf("fs", "ls", "lake://x")
    assert failed.code == 1
    assert f"scheme 'lake', [filesystems] of {archive}: nowhere:fs cannot be" in failed.err
    assert any("nowhere is not installed" in line for line in mtf("why", "lake").lines)
    assert mtf("fs", "cat", "archive://folder/file").out == b"content"
