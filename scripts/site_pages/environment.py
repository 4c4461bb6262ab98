"""The page on the variables of the environment."""

from __future__ import annotations

from modular_tf.service.configuration import KEYS
from site_pages.markdown import code, table

_OF_PLUGINS = {
    "MODULAR_TF_CONFIG": "The configuration file, instead of the user's own.",
    "MODULAR_TF_PLUGIN_PATH": "Files and directories to search for plugins, separated by `:`.",
    "TF_PLUGGABLE_DEVICE_LIBRARY_PATH": "Likewise, as in TensorFlow.",
    "TF_ENABLED_DEVICE_TYPES": "The device types to list, separated by commas; empty for all.",
}
_OF_TENSORFLOW = {
    "MODULAR_TF_TENSORFLOW": "With the value 0, neither the import of `modular_tf.tensorflow.auto` "
    "nor a start of TensorBoard registers schemes.",
}
_OF_LOGS = {
    "MODULAR_TF_LOG": "The structured log on standard error: `pretty`, `json` or `off`, and a "
    "level after a colon, as `json:debug`.",
    "NO_COLOR": "Where it is set, the log has no colours.",
    "TF_CPP_MIN_LOG_LEVEL": "The lowest severity of messages by `TF_Log`, 0 (all) to 3 (fatal).",
    "TF_CPP_MAX_VLOG_LEVEL": "The highest level of messages by `TF_VLog`.",
    "TF_CPP_VMODULE": "Levels of `VLOG` by source file of a plugin, as `file=2,other=1`.",
    "COLUMNS": "The width of help texts, instead of the terminal's.",
}
_OF_PLACES = {
    "HOME": "Where the four directories below are, unless their variables say otherwise.",
    "XDG_CONFIG_HOME": "The directory of `modular_tf/modular-tf.toml`.",
    "XDG_DATA_HOME": "The directory of `modular_tf/plugins`, the drop-in folder.",
    "XDG_CACHE_HOME": "The directory of what was found out about libraries.",
    "XDG_STATE_HOME": "The directory of the quarantine.",
    "XDG_RUNTIME_DIR": "Where links for plugins that look for companions in their own folder are.",
    "TMPDIR": "Where temporary files of plugins and of checks are made. `TF_GetTempFileName` looks "
    "at `TEST_TMPDIR` first, and at `TMP` last.",
    "TEST_TMPDIR": "See `TMPDIR`.",
    "TMP": "See `TMPDIR`.",
}
_OF_THE_LINKER = {
    "LD_LIBRARY_PATH": "Libraries that are found there are judged with the plugin that needs them.",
    "LD_PRELOAD": "Libraries in it are judged with the plugins; in a lock file they are listed.",
    "LD_AUDIT": "Likewise.",
    "GLIBC_TUNABLES": "Passed on where the linker is asked for libraries.",
    "LD_ASSUME_KERNEL": "Passed on where the linker is asked for libraries.",
    "LD_HWCAP_MASK": "Passed on where the linker is asked for libraries.",
    "LD_DEBUG": "Set for the process that asks the linker, never read.",
}
_OF_SANITIZERS = {
    "ASAN_OPTIONS": "Options of AddressSanitizer, added to in processes of checks.",
    "TSAN_OPTIONS": "Likewise, of ThreadSanitizer.",
    "UBSAN_OPTIONS": "Likewise, of UndefinedBehaviorSanitizer.",
}
_SECTIONS = {
    "Plugins": _OF_PLUGINS,
    "TensorFlow": _OF_TENSORFLOW,
    "Logs and texts": _OF_LOGS,
    "Places": _OF_PLACES,
    "The dynamic linker": _OF_THE_LINKER,
    "Sanitizers": _OF_SANITIZERS,
}
_HEAD = """\
# Environment variables

A process with rights that its user lacks (set-user-ID) reads none of them but what the system
itself reads. Plugins read variables of their own: see [for data
engineers](../start/data-engineers.md).

## Instead of keys of the configuration
"""


def page() -> str:
    """Return the page on every variable."""
    of_keys = [
        (code(variable), f"[`{name}`](configuration.md#{name})")
        for name, key in KEYS.items()
        for variable in key.variables
    ]
    parts = [_HEAD, table(("variable", "replaces"), of_keys)]
    for title, variables in _SECTIONS.items():
        rows = [(code(name), meaning) for name, meaning in variables.items()]
        parts.append(f"## {title}\n\n{table(('variable', 'meaning'), rows)}")
    return "\n".join(parts)
