"""The deeds of the hostile plugin, and what the user is to be told of each."""

from __future__ import annotations

from typing import NamedTuple


class Deed(NamedTuple):
    """A deed.

    Attributes:
        name: As `deeds/` has it.
        about: What the plugin does.
        said: A regular expression for rule and message of the call's error; "" where the call
            returns.
        call: The call in which it does it.
        probed: One for what later calls may say before they succeed; "" where none may fail.
        probe: What is done later, `file`, `list` or `settings`.
        timeout: Seconds that a call may take.
        pause: Seconds between the deed and what is done later.
    """

    name: str
    about: str
    said: str
    call: str = "exists"
    probed: str = ""
    probe: str = "file"
    timeout: float = 10.0
    pause: float = 0.0


_ENDED = "LD-140 .*"
_HANG_S = 2.0
_LATE = "LD-141 .*gave no answer within 2 s and was ended"
FORGED = "LD-142 "
# A new process has none of the files that the plugin keeps in memory.
_LOST = "(LD-14[0-4]|None new_random_access_file) "
_LIBRARY = ".*libfixture_filesystem_hostile_at_work"
# What ends the watcher too; what is left to say of it depends on who saw the end first.
_WATCHER = "LD-140 .*(killed|ended|stopped)"
_ALL_IT_CAN_REACH = "LD-14[01] "


def _crash(name: str, about: str, said: str) -> Deed:
    return Deed(name, about, f"{_ENDED}{said}{_LIBRARY}")


DEEDS = (
    _crash("segv", "reads memory that is not there", "crashed with SIGSEGV"),
    _crash("call-null", "calls a null function", "crashed with SIGSEGV"),
    _crash("illegal", "runs an instruction that is none", "crashed with SIG(ILL|TRAP)"),
    _crash("fpe", "raises SIGFPE", "crashed with SIGFPE"),
    _crash("bus", "reads behind the end of a mapped file", "crashed with SIGBUS"),
    _crash("abort", "aborts", "aborted with SIGABRT"),
    _crash("overflow", "overflows the stack", "overflowed the stack"),
    _crash("overflow-in-thread", "overflows the stack of a thread", "overflowed the stack"),
    _crash("segv-in-thread", "crashes in a thread of its own", "crashed with SIGSEGV"),
    Deed("exit-0", "ends the process as if all were well", f"{_ENDED}exit status 0"),
    Deed("exit-3", "ends the process with status 3", f"{_ENDED}exit status 3"),
    Deed("leave", "ends the process without its exit handlers", f"{_ENDED}exit status 4"),
    Deed("leave-quickly", "ends the process by quick_exit", f"{_ENDED}exit status 5"),
    Deed("segv-later", "crashes later, in a thread", "", probed=_LOST, pause=0.5),
    Deed("abort-later", "aborts later, in a thread", "", probed=_LOST, pause=0.5),
    Deed("throw", "throws a C++ exception", "exception left the plugin: .*hostile plugin"),
    Deed("throw-in-thread", "throws where nobody catches", "", probed=_LOST, pause=0.3),
    Deed("corrupt-heap", "writes behind its blocks", f"|{_ENDED}", probed=_LOST),
    Deed("free-twice", "frees a block twice", f"|{_ENDED}aborted with SIGABRT", probed=_LOST),
    Deed("free-unallocated", "frees what is no block", f"{_ENDED}aborted with SIGABRT"),
    Deed("hang", "never returns", f"{_LATE}{_LIBRARY}", timeout=_HANG_S),
    Deed("spin", "never returns, and takes a processor", f"{_LATE}{_LIBRARY}", timeout=_HANG_S),
    Deed("hang-deaf", "never returns, and hears no signal", _LATE, timeout=_HANG_S),
    Deed("deadlock", "waits for its own lock", _LATE, timeout=_HANG_S),
    Deed("exit-and-hang", "hangs in an exit handler", _ALL_IT_CAN_REACH, timeout=_HANG_S),
    Deed("hang-at-exit", "leaves an exit handler that hangs", ""),
    Deed("crash-at-exit", "crashes in its destructor", f"{_ENDED}exit status 0"),
    Deed("crash-when-unloaded", "leaves a destructor that crashes", ""),
    Deed("end-thread", "ends the thread of the call", _ALL_IT_CAN_REACH, timeout=_HANG_S),
    Deed("cancel-thread", "cancels the thread of the call", _ALL_IT_CAN_REACH, timeout=_HANG_S),
    Deed("jump", "jumps to a frame that has ended", "|LD-14[01] ", timeout=_HANG_S, probed=_LOST),
    Deed("segv", "crashes when a file is read", f"{_ENDED}SIGSEGV", call="read"),
    Deed("segv", "crashes when a file is written", f"{_ENDED}SIGSEGV", call="append"),
    Deed("hang", "hangs when a file is read", _LATE, call="read", timeout=_HANG_S),
    # Signals.
    Deed("kill-self", "kills itself", f"{_ENDED}SIGKILL"),
    Deed("terminate-self", "terminates itself", f"{_ENDED}SIGTERM"),
    Deed("interrupt-self", "interrupts itself", ""),
    Deed("stop-self", "stops itself", f"|{_ENDED}stopped by SIGSTOP", probed=_LOST),
    Deed("kill-group", "kills its group", f"{_ENDED}SIGKILL"),
    Deed("stop-group", "stops its group", f"|{_ENDED}stopped by SIGSTOP", probed=_LOST),
    Deed("kill-everybody", "kills all that it can name", f"|{_WATCHER}", probed=_LOST),
    Deed("stop-everybody", "stops all that it can name", f"|{_WATCHER}", probed=_LOST),
    Deed("terminate-everybody", "terminates all that it can name", f"|{_WATCHER}", probed=_LOST),
    Deed("kill-parent", "kills its watcher", f"|{_WATCHER}", probed=_LOST),
    Deed("stop-parent", "stops its watcher", f"|{_WATCHER}", probed=_LOST),
    Deed("terminate-parent", "terminates its watcher", f"|{_WATCHER}", probed=_LOST),
    Deed("kill-ancestors", "kills all above it", f"|{_WATCHER}", probed=_LOST),
    Deed("trace-ancestors", "traces all above it", f"|{_WATCHER}", probed=_LOST),
    Deed("write-to-ancestors", "writes to memory of those above it", f"|{_WATCHER}", probed=_LOST),
    Deed("ignore-all", "ignores all signals and hangs", _LATE, timeout=_HANG_S),
    Deed("return-from-fault", "returns from its own SIGSEGV", _LATE, timeout=_HANG_S),
    Deed("default-fault", "takes the handler of SIGSEGV away", f"{_ENDED}SIGSEGV"),
    Deed(
        "survive-parent",
        "kills its watcher and wants to live on",
        _ALL_IT_CAN_REACH,
        timeout=_HANG_S,
    ),
    Deed("alarm", "is ended by an alarm", f"{_ENDED}SIGALRM"),
    # Memory, processes, output, limits.
    Deed("memory-bomb", "takes memory until there is none", _ENDED, timeout=60.0),
    Deed("keep-gibibyte", "keeps a gibibyte", "", timeout=60.0),
    Deed("fork-bomb", "starts 1500 processes", f"{_ENDED}more than 512 processes", timeout=60.0),
    Deed(
        "fork-bomb-later", "starts 1500 processes later", "", timeout=60.0, pause=4.0, probed=_LOST
    ),
    Deed("thread-bomb", "starts 2000 threads", "", timeout=60.0),
    Deed("daemonise", "leaves a daemon behind", ""),
    Deed("daemonise-and-crash", "leaves a daemon behind and crashes", f"{_ENDED}SIGSEGV"),
    Deed("fork-and-return", "answers from two processes", "", probed=_LOST),
    Deed("vfork-and-leave", "starts a process that ends", ""),
    Deed("become-another", "becomes another program", f"{_ENDED}"),
    Deed("become-another-that-ends", "becomes a program that ends", f"{_ENDED}exit status 0"),
    Deed("output", "writes a gibibyte", "", timeout=120.0),
    Deed("output-later", "writes a gibibyte later", "", timeout=120.0),
    Deed("limits-zero", "sets all limits to 0", "|LD-14[01] ", probed=_LOST),
    Deed("no-processor", "may use no processor time", f"{_ENDED}(SIGXCPU|SIGKILL)"),
    Deed("no-descriptors", "may have no descriptors", "", probed=f"{_LOST}|RESOURCE"),
    Deed("no-file-size", "may write no files", "", probed=f"{_LOST}|RESOURCE"),
    Deed("unmap-shared", "unmaps the memory that the host shares", "", probed=_LOST),
    Deed("protect-shared", "protects the memory that the host shares", "", probed=_LOST),
    Deed("unmap-all", "unmaps all memory", f"{_ENDED}SIGSEGV"),
    # Descriptors.
    Deed("close-all", "closes all descriptors", f"|{_ENDED}"),
    Deed("close-streams", "closes the standard streams", ""),
    Deed("close-report", "closes the report", ""),
    Deed("close-control", "closes the socket for channels", "|LD-14[01] ", probed=_LOST),
    Deed("close-channels", "closes the channels", f"|{_ENDED}"),
    Deed("shut-channels", "shuts the channels down", f"|{_ENDED}", probed=_LOST),
    Deed("shut-control", "shuts the socket for channels down", "|LD-14[01] ", probed=_LOST),
    Deed("null-over-channels", "puts /dev/null over the channels", f"|{_ENDED}", probed=_LOST),
    Deed(
        "null-over-control",
        "puts /dev/null over the socket for channels",
        "|LD-14[01] ",
        probed=_LOST,
    ),
    Deed("null-over-report", "puts /dev/null over the report", ""),
    Deed("own-over-channels", "puts sockets of its own over the channels", _ENDED),
    Deed("own-over-control", "puts a socket of its own over that for channels", "", probed=_LOST),
    Deed("do-not-wait-on-channels", "makes the channels non-blocking", "", probed=_LOST),
    Deed("move-channels", "moves the channels to other numbers", _ENDED, timeout=_HANG_S),
    Deed("leak", "opens all the files that it may", "", probed=f"{_LOST}|RESOURCE"),
    Deed("steal-files", "takes the files that the host sends", "", timeout=_HANG_S, probed=_LOST),
    Deed(
        "forge-report", "tells its watcher of its own end", f"|{_ENDED}", timeout=60.0, probed=_LOST
    ),
    Deed("report-without-end", "writes an entry without end to the report", "", timeout=60.0),
    # The process.
    Deed("clear-environment", "clears the environment", ""),
    Deed("spoil-environment", "puts rubbish into the environment", ""),
    Deed(
        "change-environment", "changes the environment in two threads", f"|{_ENDED}", probed=_LOST
    ),
    Deed("change-locale", "changes the locale", ""),
    Deed("change-directory", "changes the directory", ""),
    Deed("remove-directory", "removes its own directory", ""),
    Deed("change-root", "changes the root directory", ""),
    Deed("change-umask", "changes the umask", ""),
    Deed("change-user", "gives up its user", ""),
    Deed("leave-namespaces", "leaves the namespaces and hides /proc", ""),
    Deed("hide", "takes another name, session and group", ""),
    Deed("be-traced", "has itself traced and crashes", "LD-14[01] "),
    Deed("trap-numbers", "has floating point trap", ""),
    Deed(  # a thread that may make no system calls any more is killed at its next one
        "refuse-calls",
        "refuses all system calls but reads and writes",
        f"|{_ALL_IT_CAN_REACH}",
        timeout=_HANG_S,
        probed=_ALL_IT_CAN_REACH,
    ),
    # Listings and names.
    Deed("endless", "lists names without end", _LATE, call="list", timeout=_HANG_S),
    Deed("many", "lists 20 MB of names", "", call="list", timeout=60.0),
    Deed("long-name", "lists a name of 200 MiB", "has no end", call="list", timeout=60.0),
    Deed("lying-count", "lists three names and says a billion", f"{_ENDED}", call="list"),
    Deed("null-names", "lists a hundred null names", "|.", call="list", probed=_LOST),
    Deed("no-array", "lists a hundred names and gives no list", "|.", call="list", probed=_LOST),
    Deed("segv", "crashes when a name is translated", f"{_ENDED}SIGSEGV", call="translate"),
    Deed("hang", "hangs when a name is translated", _LATE, call="translate", timeout=_HANG_S),
    Deed("name-without-end", "translates a name to 40 MiB", "", call="translate", timeout=60.0),
    # The protocol.
    Deed("forge-longer", "announces more bytes than it sends", "", probed=FORGED),
    Deed("forge-enormous", "announces all bytes there can be", "", probed=FORGED),
    Deed("forge-outside", "announces a tebibyte in the shared memory", "", probed=FORGED),
    Deed("forge-no-place", "puts bytes in a place that is none", "", probed=FORGED),
    Deed("forge-no-file", "announces a file and sends none", "", probed=FORGED),
    Deed("forge-no-code", "sends a status code that is none", "", probed=FORGED),
    Deed("forge-negative-code", "sends a negative status code", "", probed=FORGED),
    Deed("forge-other-call", "answers another call", "", probed=FORGED),
    Deed("forge-no-serial", "answers no call", "", probed=FORGED),
    Deed("forge-two-files", "sends two files with each reply", "", probed=_LOST, timeout=_HANG_S),
    Deed("forge-useless-file", "sends a file with each reply", "", probed=_LOST, timeout=_HANG_S),
    Deed("forge-unsealed", "sends a file that it can cut off", "", probe="list", probed=FORGED),
    Deed("forge-with-holes", "sends a tebibyte of holes", "", probe="list", probed=FORGED),
    Deed("forge-too-short", "sends a file that is too short", "", probe="list", probed=FORGED),
    Deed("forge-device", "sends a device", "", probe="list", probed="LD-14[12] "),
    Deed("forge-negative-count", "announces -1 names", "", probe="list", probed=FORGED),
    Deed(
        "forge-enormous-count", "announces all names there can be", "", probe="list", probed=FORGED
    ),
    Deed("forge-many-empty", "sends 64 million empty names", "", probe="list", probed=FORGED),
    Deed("forge-no-token", "starts no transaction", "", probe="settings", probed=FORGED),
    Deed(
        "forge-enormous-token",
        "starts a transaction of another process",
        "",
        probe="settings",
        probed=FORGED,
    ),
    Deed(
        "forge-spoilt-options",
        "sends options that are none",
        "",
        probe="settings",
        probed=FORGED,
    ),
    Deed("forge-many-options", "sends two million options", "", probe="settings", probed=FORGED),
    Deed("steal-requests", "takes a request from the line", "", probed=FORGED),
    Deed("answer-twice", "answers before the call has ended", FORGED, probed=_LOST),
    Deed("answer-for-ever", "answers as often as it can", FORGED, probed=_LOST),
    Deed("answer-with-rubbish", "answers with rubbish", FORGED, probed=_LOST),
    Deed("answer-too-long", "answers with more than fits", FORGED, probed=_LOST),
)
