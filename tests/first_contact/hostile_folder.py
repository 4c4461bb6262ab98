"""A folder of hostile and defective libraries, and what must be said of each.

The damaged ones are a good plugin with bytes of its dynamic section, headers and code overwritten
by seeded chance; whatever they do, they must not do it to the application.
"""

from __future__ import annotations

import random
import shutil
from typing import NamedTuple

from tests.first_contact.conftest import build_misdeed
from tests.plugins.build import build_plugin
from tests.plugins.matrix import variants

# Each deed at one place or more; tests/first_contact/test_verdicts.py has it at others.
_MISDEEDS = (
    ("CRASH", "LD-060", "device INIT"),
    ("CRASH", "LD-060", "filesystem INIT"),
    ("CRASH", "LD-060", "device CONSTRUCTOR"),
    ("CRASH", "LD-060", "device CREATE_DEVICE"),
    ("CRASH", "LD-060", "filesystem SCHEME_INIT"),
    ("CALL_NULL", "LD-060", "device INIT"),
    ("OVERFLOW", "LD-060", "filesystem INIT"),
    ("ABORT", "LD-060", "device INIT"),
    ("THROW", "LD-060", "filesystem CONSTRUCTOR"),
    ("EXIT_0", "LD-060", "device INIT"),
    ("LEAVE_3", "LD-060", "filesystem INIT"),
    ("KILL_PARENT", "LD-060", "device INIT"),
    ("STOP_PARENT", "LD-060", "device INIT"),
    ("KILL_ANCESTORS", "LD-060", "filesystem SCHEME_INIT"),
    ("ESCAPE", "LD-060", "filesystem INIT"),
    ("INTERRUPT", "LD-060", "device INIT"),
    ("HANG", "LD-061", "filesystem SCHEME_INIT"),
    ("SPIN", "LD-061", "filesystem INIT"),
    ("CLOSE_ALL", "LD-062", "device INIT"),
    ("CLOSE_OUTPUT", "LD-062", "filesystem INIT"),
    ("ALLOCATE", "LD-064", "device INIT"),
    ("TOUCH_AND_FREE", "LD-064", "filesystem INIT"),
    ("ALLOCATE_ALL", "LD-064", "device INIT"),
    ("CATCH_INTERRUPT", "LD-066", "filesystem INIT"),
    ("DEFAULT_PIPE", "LD-066", "device INIT"),
    ("BLOCK_INTERRUPT", "LD-066", "filesystem INIT"),
    ("CHANGE_LOCALE", "LD-067", "device INIT"),
    ("FORK", "LD-068", "filesystem INIT"),
    ("DAEMON", "LD-068", "device INIT"),
    ("FORK_MANY", "LD-068", "filesystem INIT"),
    ("FORK_AND_CRASH", "LD-060", "device INIT"),
)
# What breaks rules of tables, symbols and the file: told by the probe or by loading.
_DEFECTS = {
    "filesystem": (
        "no-init", "unresolved-symbol", "needed-missing", "init-plugin-crashes",
        "init-plugin-aborts", "init-plugin-exits", "constructor-crashes", "init-plugin-throws",
    ),
    "device": ("init-plugin-crashes", "dialect-rfc-example", "destroy-platform-null"),
}  # fmt: skip
_DAMAGED = 16
_SEED = 20261121


class Library(NamedTuple):
    """One library of the folder.

    Attributes:
        name: The plugin's name in the list.
        states: The states that it may end in.
        rule: The rule that is its reason; None for what chance decides.
    """

    name: str
    states: frozenset[str]
    rule: str | None


def fill(folder):
    """Put all bad libraries and three good ones, `good_*`, into a folder; return the bad ones."""
    made = [*_misdeeds(folder), *_defects(folder), *_damaged(folder)]
    for number in range(2):
        scheme = build_plugin(variants("filesystem")["good"], {"FIXTURE_SCHEME": f"good{number}"})
        shutil.copy(scheme, folder / f"libgood_{number}.so")
    settings = {"FIXTURE_TYPE": "GOOD", "FIXTURE_PLATFORM": "GOOD_CHIP"}
    shutil.copy(build_plugin(variants("device")["good"], settings), folder / "libgood_device.so")
    return made


def _misdeeds(folder):
    made = []
    for deed, rule, where in _MISDEEDS:
        kind, place = where.split()
        name = f"{deed}_{kind}_{place}".lower()
        shutil.copy(build_misdeed(deed, place, kind), folder / f"lib{name}.so")
        made.append(Library(name, frozenset({"quarantined"}), rule))
    return made


def _defects(folder):
    made = []
    for family, names in _DEFECTS.items():
        for name in names:
            variant = variants(family)[name]
            settings = {"FIXTURE_SCHEME": "fixture"}
            if family == "device":
                settings = {"FIXTURE_TYPE": "FIXTURE", "FIXTURE_PLATFORM": "FIXTURE_CHIP"}
            plugin = f"{family}_{name.replace('-', '_')}"
            shutil.copy(build_plugin(variant, settings), folder / f"lib{plugin}.so")
            rule = "LD-060" if variant.fault else variant.rule
            made.append(Library(plugin, frozenset({variant.state}), rule))
    return made


def _damaged(folder):
    chance = random.Random(_SEED)
    good = build_plugin(variants("filesystem")["good"], {"FIXTURE_SCHEME": "damaged"}).read_bytes()
    made = []
    for number in range(_DAMAGED):
        content = bytearray(good)
        for _ in range(4 << chance.randrange(6)):
            content[chance.randrange(len(content))] = chance.randrange(256)
        if number % 4 == 0:
            del content[chance.randrange(len(content)) :]
        (folder / f"libdamaged_{number}.so").write_bytes(content)
        anything = frozenset({"rejected", "failed", "quarantined", "loaded", "shadowed"})
        made.append(Library(f"damaged_{number}", anything, None))
    return made
