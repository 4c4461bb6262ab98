"""Completion of command lines in shells: the scripts that ask, and the answer."""

from __future__ import annotations

import os
import re
import sys

import click
from click.shell_completion import ShellComplete, split_arg_string

from modular_tf.cli.frame import GlobalOptions, Invocation, argument, command
from modular_tf.cli.process import COMPLETION_VARIABLE, PROGRAM, Exit

# Each script passes the line up to the cursor. bash parts words at colons and inserts what it gets
# as it stands; zsh and fish quote it themselves. No shell adds a space after a directory or scheme.
_SCRIPTS = {
    "bash": """\
_modular_tf_complete() {
    mapfile -t COMPREPLY < <(
        _MODULAR_TF_COMPLETE=bash COMP_LINE="${COMP_LINE:0:COMP_POINT}" \\
            COMP_WORDBREAKS="$COMP_WORDBREAKS" "$1" 2>/dev/null
    )
}
complete -o nospace -F _modular_tf_complete modular-tf
""",
    "zsh": """\
#compdef modular-tf
_modular_tf_complete() {
    local -a found others
    found=(${(f)"$(_MODULAR_TF_COMPLETE=zsh COMP_LINE="${(j: :)words[1,CURRENT-1]} $PREFIX" \\
        "$words[1]" 2>/dev/null)"})
    others=(${found:#*/})
    (( $#others )) && compadd -U -- $others
    found=(${(M)found:#*/})
    (( $#found )) && compadd -U -S '' -- $found
    (( $#found + $#others ))
}
compdef _modular_tf_complete modular-tf
""",
    "fish": """\
complete -c modular-tf -f -a \
'(_MODULAR_TF_COMPLETE=fish COMP_LINE=(commandline -cp) modular-tf 2>/dev/null)'
""",
}
_MARK = "\0"


@command(calls_plugins=False)
@argument("shell", type=click.Choice(list(_SCRIPTS)), help="the shell that is to complete")
def completion(call: Invocation, shell: str) -> Exit:
    """Print what a shell needs to complete command lines when the tab key is pressed.

    It belongs into the start file of bash or zsh, there after compinit, or into a file of fish's
    own. Commands, options, plugins, operations, schemes, files and what is in stores are completed;
    for a store a shell waits two seconds at most.
    """
    code = _SCRIPTS[shell]
    call.show_object({"shell": shell, "code": code}, lambda: sys.stdout.write(code))
    return Exit.DONE


def answer_shell(program: click.Command) -> Exit:
    """Write what may follow the command line in COMP_LINE, one candidate a line."""
    line = os.environ.get("COMP_LINE", "")
    _, *words, begun = split_arg_string(line + _MARK)  # so that the last word is the one begun
    begun = begun.removesuffix(_MARK)
    shell = os.environ[COMPLETION_VARIABLE]
    line_so_far = ShellComplete(program, {"obj": GlobalOptions()}, PROGRAM, COMPLETION_VARIABLE)
    items = line_so_far.get_completions(words, begun)
    if shell == "bash":
        breaks = set(":=") & set(os.environ.get("COMP_WORDBREAKS", ""))
        start = max((begun.rfind(one) + 1 for one in breaks), default=0)
        space = " " if len(items) == 1 and not items[0].value.endswith("/") else ""
        lines = [re.sub(r"([^\w@%+=:,./-])", r"\\\1", one.value[start:]) + space for one in items]
    elif shell == "fish":
        lines = [f"{one.value}\t{one.help or ''}" for one in items]
    else:
        lines = [one.value for one in items]
    sys.stdout.write("".join(f"{one}\n" for one in lines))
    return Exit.DONE
