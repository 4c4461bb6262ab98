"""The pages on the keys of the two settings files."""

from __future__ import annotations

import json
from dataclasses import is_dataclass
from typing import TYPE_CHECKING

from modular_tf.check import settings
from modular_tf.check.options import OPTIONS, Options
from modular_tf.device.memory.memory_settings import MemorySettings
from modular_tf.discovery.trust.policy import TrustPolicy
from modular_tf.service.configuration import KEYS, TABLES, Config
from site_pages.docstrings import attributes
from site_pages.markdown import code

if TYPE_CHECKING:
    from collections.abc import Iterator

    from modular_tf.rules.keys import Key

_CONFIGURATION = """\
# Configuration

The file is `modular-tf.toml`: the one that `MODULAR_TF_CONFIG` names, or the user's own in
`~/.config/modular_tf/`. [Places of the user](../places.md) says which paths count, and who may
write there. Variables of the environment replace the values of the file, and arguments replace
both. An unknown key, or a value of another shape, is an error. `modular-tf paths` prints every key
with its value and with who decided it.

```toml
enable = ["tensorflow-io"]
first_contact = "always"

[priorities]
"GPU:MY_CHIP" = 200

[trust]
frozen = true

[memory.GPU]
fraction = 0.5

[filesystems]
s3 = "fsspec"
gs2 = {fsspec = "gs", project = "x", token = {env = "GS_TOKEN"}}
lake = {object = "mycompany.storage:filesystem"}
```
"""
_CLASSES = {"": Config, "memory": MemorySettings, "trust": TrustPolicy}
_SUBTITLES = {
    "memory": "Keys of `[memory]` hold for all device types, those of `[memory.TYPE]` for one.",
    "trust": "Relative paths begin where the file is.",
}
_CHECK_SETTINGS = """\
# Settings of checks

The file is `modular-tf-check.toml`, in the directory where `modular-tf check` runs or the nearest
directory above it. Options of the command replace what the file says.

```toml
{sample}```
"""


def configuration() -> str:
    """Return the page on every key of the configuration."""
    own = {name: key for name, key in KEYS.items() if "." not in name}
    parts = [_CONFIGURATION, *(_entry(name, key, "") for name, key in own.items())]
    for table, keys in TABLES.items():
        parts.append(f"## {table}\n\n{attributes(Config)[table]}\n\n{_SUBTITLES[table]}\n")
        parts += [_entry(f"{table}.{name}", key, table) for name, key in keys.items()]
    return "\n".join(parts)


def _entry(name: str, key: Key, table: str) -> str:
    attribute = name.rpartition(".")[2]
    documented = _CLASSES[table]
    facts = [f"- expected: {key.expected}", f"- default: {_default(documented, attribute)}"]
    if key.variables:
        facts.append(f"- variable: {', '.join(map(code, key.variables))}")
    lines = "\n".join(facts)
    depth = "###" if table else "##"
    return f"{depth} {name} {{#{name}}}\n\n{attributes(documented)[attribute]}\n\n{lines}\n"


def _default(documented: type, attribute: str) -> str:
    value = getattr(documented(), attribute)
    if value is None:
        return "none"
    return code(json.dumps(value if not is_dataclass(value) else {}))


def check_settings() -> str:
    """Return the page on every key of the settings of checks."""
    parts = [_CHECK_SETTINGS.format(sample=_sample()), *_check_entries(), *_check_options()]
    return "\n".join(parts)


def _sample() -> str:
    return (settings.__doc__ or "").split("```toml\n")[1].split("```")[0]


def _check_entries() -> Iterator[str]:
    """Yield the entry of each key; `options` comes last, and its own entries behind it."""
    told = attributes(settings.CheckSettings)
    for name in sorted(settings.KEYS, key=lambda name: name == "options"):
        meaning = told.get(name) or _OWN_PROFILES
        yield f"## {name}\n\n{meaning}\n\n- expected: {settings.KEYS[name].expected}\n"


def _check_options() -> Iterator[str]:
    """Yield the entry of each option that checks read."""
    told = attributes(Options)
    for name, key in OPTIONS.items():
        default = getattr(Options(), name)
        usual = "that of the check" if default is None else code(json.dumps(default))
        facts = f"- expected: {key.expected}\n- default: {usual}"
        yield f"### options.{name} {{#options.{name}}}\n\n{told[name]}\n\n{facts}\n"


_OWN_PROFILES = "Profiles of the file's own, each a table: `about`, `like`, `traits`, `options`."
