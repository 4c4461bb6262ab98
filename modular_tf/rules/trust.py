"""Rules of trust: who may have changed a plugin, and whether its bytes are the expected ones."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Violation

OWNER = Rule(
    id="LD-075",
    requirement="A plugin, its companions, and every link and directory on the way to them belong "
    "to root, to the user of this process, or to a user who can change this package anyway.",
    consequence="The plugin is rejected unopened: its owner could run code as this user. "
    "TensorFlow opens it.",
    remedy="Install it as this user or as root; or name the owner in `owners` under [trust] in "
    "the configuration.",
    source="design, trust; the owners that ssh(1) and sudo(8) accept for their files",
)
WORLD_WRITABLE = Rule(
    id="LD-076",
    requirement="No other user may write to a plugin, its companions or a directory on the way to "
    "them; above the plugin's own directory a sticky one such as /tmp is accepted.",
    consequence="The plugin is rejected unopened: anybody could have put code there. TensorFlow "
    "opens it.",
    remedy="Take the permission away (chmod o-w); or name the path in `allow_writable` under "
    "[trust] in the configuration.",
    source="design, trust; chmod(2) on the sticky bit",
)
SHARED_WRITING = Rule(
    id="LD-077",
    requirement="No group of others may write to a plugin, its companions or a directory on the "
    "way to them; what any group may write to has no access control list.",
    consequence="The plugin is rejected unopened: a member of the group, or somebody in the list, "
    "could have put code there. TensorFlow opens it.",
    remedy="Take the permission away (chmod g-w, setfacl -b); or name the group in `groups`, or "
    "the path in `allow_writable`, under [trust] in the configuration.",
    source="design, trust; acl(5)",
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
    source="design, trust",
)
LOCKED = Rule(
    id="LD-080",
    requirement="Where plugins are frozen, the lock file has the hash of each plugin, and of its "
    "companions with it, and that of the code of each hook of an installed package.",
    consequence="The plugin is rejected unopened; the hook is not imported.",
    remedy="Look at the change; if it is wanted, write the lock file again with `modular-tf lock`.",
    source="design, trust",
)
LOCK_USABLE = Rule(
    id="LD-081",
    requirement="If plugins are frozen, there is a lock file, it can be read, and no other user "
    "may write to it.",
    consequence="Every plugin is rejected unopened.",
    remedy="Write one with `modular-tf lock`, or name it in `lock` under [trust] in the "
    "configuration.",
    source="design, trust",
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
    source="design, trust; dl_iterate_phdr(3)",
)
UNCHANGED = Rule(
    id="LD-082",
    requirement="The file that is mapped is the one that was checked.",
    consequence="The plugin is not mapped: the file was replaced or written to in between.",
    remedy="Load it again when the writing process has finished.",
    source="design, trust",
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
