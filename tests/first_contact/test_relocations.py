"""A library whose relocations lead outside of it is never mapped: what it would hit is chance."""

import struct
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile

from modular_tf.first_contact.child import stray_relocation
from modular_tf.loading.task import Task
from tests.first_contact.conftest import find_of


@pytest.fixture
def damaged(fixture_plugin, tmp_path):
    """Return a plugin with one relocation of a section at another place."""

    def build(section, target):
        good = fixture_plugin("good")
        content = bytearray(good.read_bytes())
        with good.open("rb") as file:
            table = ELFFile(file).get_section_by_name(section)
            struct.pack_into("<Q", content, table["sh_offset"], target)
        library = tmp_path / "libdamaged.so"
        library.write_bytes(content)
        return library

    return build


@pytest.mark.parametrize(
    ("section", "target"), [(".rela.dyn", 1 << 24), (".rela.plt", (1 << 64) - 8)]
)
def test_a_stray_relocation_is_found_before_the_library_is_mapped(section, target, damaged):
    library = damaged(section, target)
    found = find_of(Task("x", str(library), kinds=("filesystem",)))

    assert found.incident.violation.rule_id == "LD-005"
    expected = f"{library} is damaged: a relocation at {target:#x} lies outside of it, at first"
    assert found.incident.violation.message.startswith(expected)
    assert found.offer.schemes == ()


def test_a_stray_relocation_of_a_companion_counts(damaged, fixture_plugin):
    companion = damaged(".rela.dyn", 1 << 24)
    task = Task("x", str(fixture_plugin("good")), (str(companion),), kinds=("filesystem",))

    assert find_of(task).incident.violation.message.startswith(f"{companion} is damaged")


def test_the_libraries_of_this_process_have_none():
    lines = Path("/proc/self/maps").read_text(errors="replace").splitlines()
    words = (line.split(maxsplit=5) for line in lines)
    mapped = {w[5] for w in words if len(w) == 6 and ".so" in w[5] and Path(w[5]).exists()}

    assert len(mapped) > 10
    assert {path: found for path in mapped if (found := stray_relocation(path))} == {}
