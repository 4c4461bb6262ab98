"""Rules of trust: who may have changed a plugin, a user's settings, or what is stored."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity, Violation

OWNER = Rule(
    id="LD-075",
    requirement="A plugin, its companions, and every link and directory on the way to them belong "
    "to root, to the user of this process, or to a user who can change this package anyway.",
    consequence="The plugin is rejected unopened: its owner could run code as this user. "
    "TensorFlow opens it.",
    remedy="Install it as this user or as root; or name the owner in `owners` under [trust] in "
    "the configuration.",
    source="the owners that ssh(1) and sudo(8) accept for their files",
)
WORLD_WRITABLE = Rule(
    id="LD-076",
    requirement="No other user may write to a plugin, its companions or a directory on the way to "
    "them; above the plugin's own directory a sticky one such as /tmp is accepted.",
    consequence="The plugin is rejected unopened: anybody could have put code there. TensorFlow "
    "opens it.",
    remedy="Take the permission away (chmod o-w); or name the path in `allow_writable` under "
    "[trust] in the configuration.",
    source="chmod(2) on the sticky bit",
)
SHARED_WRITING = Rule(
    id="LD-077",
    requirement="No group of others may write to a plugin, its companions or a directory on the "
    "way to them; what any group may write to has no access control list.",
    consequence="The plugin is rejected unopened: a member of the group, or somebody in the list, "
    "could have put code there. TensorFlow opens it.",
    remedy="Take the permission away (chmod g-w, setfacl -b); or name the group in `groups`, or "
    "the path in `allow_writable`, under [trust] in the configuration.",
    source="acl(5)",
)
RECORD_HASH = Rule(
    id="LD-078",
    requirement="A plugin that an installed distribution brings has the hash of its RECORD.",
    consequence="The plugin is rejected unopened: it was changed or damaged after it was "
    "installed.",
    remedy="Install the distribution again (pip install --force-reinstall, or modular-tf fetch for "
    "what that has fetched).",
    source="PyPA specification: recording installed projects",
)
RECORDED = Rule(
    id="LD-079",
    requirement="Where the configuration has `require_record`, an installed distribution's RECORD "
    "has the hash of each plugin and companion.",
    consequence="The plugin is rejected unopened.",
    remedy="Install it as a wheel; or take `require_record` out of the configuration.",
)
LOCKED = Rule(
    id="LD-080",
    requirement="Where plugins are frozen, the lock file has the hash of each plugin, and of its "
    "companions with it, and that of the code of each hook of an installed package.",
    consequence="The plugin is rejected unopened; the hook is not imported.",
    remedy="Look at the change; if it is wanted, write the lock file again with `modular-tf lock`.",
)
LOCK_USABLE = Rule(
    id="LD-081",
    requirement="If plugins are frozen, there is a lock file, it can be read, and no other user "
    "may write to it.",
    consequence="Every plugin is rejected unopened.",
    remedy="Write one with `modular-tf lock`, or name it in `lock` under [trust] in the "
    "configuration.",
)
MAPPED_AS_JUDGED = Rule(
    id="LD-098",
    requirement="Each library that is mapped with a plugin was checked before, or is as trusted: "
    "no other user may change it and, if plugins are frozen, it is the system's or in the lock "
    "file.",
    consequence="The plugin is rejected and nothing that it offers is used, but code of the "
    "library that the message names has run, in its trial or, if plugins are frozen, in this "
    "process. A library that another thread opens while a frozen plugin is loaded counts as the "
    "plugin's, unless Python imports it.",
    remedy="Find out how the library comes in: by a variable of the linker's (LD_PRELOAD, "
    "LD_AUDIT, LD_LIBRARY_PATH), or by code of the plugin that opens it. Take it out, or make it "
    "belong to a trusted user; where plugins are frozen, write the lock file again with "
    "`modular-tf lock --load` under the same variables.",
    source="dl_iterate_phdr(3)",
)
UNCHANGED = Rule(
    id="LD-082",
    requirement="The file that is mapped is the one that was checked.",
    consequence="The plugin is not mapped: the file was replaced or written to in between.",
    remedy="Load it again when the writing process has finished.",
)

EXECUTABLE_STACK = Rule(
    id="LD-110",
    requirement="Neither a plugin nor a library that is loaded with it asks for an executable "
    "stack.",
    consequence="The plugin is rejected unopened: the dynamic linker would let code be run from "
    "the stacks of all threads, for the rest of the process, or refuse the library (since glibc "
    "2.41). TensorFlow opens it.",
    remedy="Link the library with `-z noexecstack`, or clear the mark in the file with "
    "`patchelf --clear-execstack`; or name its path in `allow_executable_stack` under [trust] in "
    "the configuration.",
    source="ELF, PT_GNU_STACK; ld(1), -z noexecstack; dlopen(3)",
)


def file_changed(path: str, since: str = "checked") -> Violation:
    """Return the violation of a file that is not what it was when something was done with it."""
    message = f"{path}: it was replaced or written to after it was {since}"
    return Violation(UNCHANGED, message, path=path)


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

LOADING_SURVIVED = Rule(
    "LD-070",
    "A process survives loading a plugin.",
    "The plugin is tried again in a child process before it is loaded again. If it does no "
    "harm there, but the next process that loads it ends too, it is quarantined. Processes "
    "that were killed at that moment, and power cuts, look the same.",
    "Run `modular-tf quarantine retry NAME`, if the processes ended for another reason; else "
    "update the plugin, or tell its author.",
)
CALLS_SURVIVED = Rule(
    "LD-130",
    "Neither a call into a plugin nor its threads, exit handlers and destructors end the process, "
    "or keep it from its end for longer than `close_timeout_s` of the configuration.",
    "It is reported on standard error and by `modular-tf why NAME`. The plugin is quarantined "
    "when the third process ends in its code: no trial would find that. Where write-protected "
    "tables of plugins were overwritten in the process, no plugin is blamed.",
    "Tell the plugin's author what was reported, and update the plugin; `modular-tf quarantine "
    "retry NAME` forgets it. `report_ended_calls = false` in the configuration, or "
    "MODULAR_TF_REPORT_ENDED_CALLS=0, switches the reports and records off.",
    "signal(7), exit(3), pthread_cancel(3)",
)
STORAGE_TRUSTED = Rule(
    "LD-071",
    "The files that this package keeps are regular files. They and their directory are owned "
    "by the user or by root, and no other user can write to them, nor to a directory or link "
    "on their path. For root, all of them are root's.",
    "Nothing is read or written there: a user who can write to it could mark a plugin as "
    "tried. Plugins are probed and tried again.",
    "Remove the file or the directory that the message names, or correct its owner and mode; "
    "or name another place: XDG_CACHE_HOME, XDG_STATE_HOME. As root in the home of another "
    "user, use that of root (`sudo -H`).",
    "XDG Base Directory Specification; the cache decides what runs without a trial",
    Severity.WARNING,
)
