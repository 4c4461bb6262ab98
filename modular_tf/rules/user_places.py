"""Rules of the user's directories: the variables that name them, and the settings there."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity

ABSOLUTE_VARIABLE = Rule(
    id="LD-105",
    requirement="HOME and the variables XDG_CONFIG_HOME, XDG_DATA_HOME, XDG_CACHE_HOME and "
    "XDG_STATE_HOME hold absolute paths.",
    consequence="The variable is ignored: a relative path would be another directory wherever the "
    "program is started, and what lies there decides which code runs.",
    remedy="Set the variable to an absolute path, or unset it.",
    source="XDG Base Directory Specification",
    severity=Severity.WARNING,
)
CONFIGURATION_OWNER = Rule(
    id="LD-106",
    requirement="Only root, the user of this process and those who can change this package can "
    "change the user's configuration file.",
    consequence="The configuration is an error: a user who can write it decides which code runs.",
    remedy="Correct owner and mode of what the message names. As root in the home of another "
    "user, use that of root (`sudo -H`). If you mean this very file, name it: MODULAR_TF_CONFIG.",
    source="the configuration has the directories of plugins, and says whom to trust",
)
