"""Rules of a process of its own: what code of a plugin does to it, in a trial and in a worker."""

from __future__ import annotations

from modular_tf.rules.violation import Rule, Severity


def _accept(rule_id: str) -> str:
    """Return how a user takes a rule as a warning: the file, and the line to write."""
    return (
        f'if the application can live with it, write `first_contact_accept = ["{rule_id}"]` into '
        "the file that MODULAR_TF_CONFIG names, or ~/.config/modular_tf/modular-tf.toml."
    )


PROCESS_SURVIVES = Rule(
    "LD-060",
    "A plugin's code does not end the process that runs it.",
    "The plugin is quarantined: it ended the child process that tried it, and would have ended "
    "the application. TensorFlow's process ends.",
    "Update the plugin, or tell its author which call ended the process, and how; the message "
    "names both.",
    "the usage example of the RFC of 2020-09-08 dereferences NULL",
)
CALLS_RETURN = Rule(
    "LD-061",
    "Each call into a plugin returns in time.",
    "The plugin is quarantined: the application would wait for ever.",
    "If the plugin needs longer, raise `first_contact_timeout_s` in the configuration and "
    "`modular-tf quarantine retry` it; else tell its author which call hangs.",
)
DESCRIPTORS_KEPT = Rule(
    "LD-062",
    "A plugin leaves the standard streams and other descriptors that it did not open alone.",
    "The plugin is quarantined: it would close files of the application.",
    "Tell the plugin's author to close only what the plugin has opened.",
    "close(2)",
)
CHILD_STARTABLE = Rule(
    "LD-063",
    "A child process can be started to try a plugin in.",
    "The plugin is not loaded, since its effect on the application is unknown.",
    "Where this process is no Python command, name one with multiprocessing.set_executable(); "
    "or trust all plugins: MODULAR_TF_FIRST_CONTACT=never.",
)
MEMORY_BOUNDED = Rule(
    "LD-064",
    "Loading a plugin and listing what it offers takes little memory.",
    "The plugin is quarantined: it has done no work yet, and the application might run out of "
    "memory.",
    "If the plugin needs that much, raise `first_contact_memory_mib` in the configuration and "
    "`modular-tf quarantine retry` it; or " + _accept("LD-064"),
)
OUTPUT_UNUSED = Rule(
    "LD-065",
    "A plugin writes nothing to standard output.",
    "The plugin is loaded. Standard output belongs to the application, whose readers would take "
    "the plugin's text for the application's: while its library is mapped and its init functions "
    "run, what it writes goes to standard error, in a process without other threads.",
    "Tell the plugin's author to use TF_Log, or standard error.",
    severity=Severity.WARNING,
)
SIGNAL_HANDLERS_KEPT = Rule(
    "LD-066",
    "A plugin leaves the signal handlers of the application in place.",
    "The plugin is quarantined: Ctrl-C would not reach the application, or a closed pipe would "
    "end it.",
    "Tell the plugin's author which signal it is; " + _accept("LD-066"),
    "signal(7)",
)
LOCALE_KEPT = Rule(
    "LD-067",
    "A plugin leaves the process's locale as it is.",
    "The plugin is quarantined: numbers and text of the application would change their form.",
    "Tell the plugin's author to use newlocale() and the functions that take a locale; "
    + _accept("LD-067"),
    "setlocale(3)",
)
NO_PROCESSES_LEFT = Rule(
    "LD-068",
    "A plugin leaves no processes behind, and starts few.",
    "The plugin is quarantined: the application would have children that it knows nothing of. "
    "They were ended here.",
    "Tell the plugin's author to start processes when work is asked for, and to end them; "
    + _accept("LD-068"),
)
PROCESS_STATE_KEPT = Rule(
    "LD-069",
    "A plugin does not change process-wide state.",
    "The plugin is loaded, and the change takes place in the application too, but that of "
    "floating-point control state, which is undone when a call into the plugin returns.",
    "Tell the plugin's author if the change is a problem.",
    severity=Severity.WARNING,
)
NEIGHBOURS_LINKABLE = Rule(
    "LD-112",
    "The libraries that a device plugin opens by itself need none of TensorFlow's.",
    "The plugin is loaded and has no devices, perhaps for want of that library.",
    "Use a build of the plugin whose libraries do not need TensorFlow, or use the plugin with "
    "TensorFlow.",
    "dlopen(3): only libraries named as needed can be replaced by the host runtime",
    Severity.WARNING,
)
RIGHTS_KEPT = Rule(
    "LD-120",
    "A plugin takes no rights, limits, exit statuses of children or view of the system from the "
    "process that loads it, and keeps less than half of the descriptors, mappings of memory and "
    "inotify instances that it may have.",
    "The plugin is quarantined: other code of the application would fail, and other plugins "
    "could not be loaded.",
    "Tell the plugin's author what was changed; " + _accept("LD-120"),
    "setrlimit(2), credentials(7), namespaces(7), seccomp(2), ptrace(2), prctl(2), wait(2)",
)
NO_FATAL_TIMER = Rule(
    "LD-121",
    "A plugin leaves no timer running whose signal would end the process.",
    "The plugin is quarantined: the timer would end the application later.",
    "Tell the plugin's author to use a timer that wakes a thread (timerfd_create), or to "
    "handle the signal; " + _accept("LD-121"),
    "alarm(2), setitimer(2), timer_create(2)",
)
ENDS_IN_ORDER = Rule(
    "LD-146",
    "A process that has loaded a plugin ends when it calls exit(), with the status that it gives.",
    "The plugin is quarantined: an exit handler or destructor would crash or hang the application "
    "at its end, or change its exit status.",
    "Tell the plugin's author which function it is; the backtrace names it; " + _accept("LD-146"),
    "exit(3), atexit(3)",
)
PROCESS_USABLE = Rule(
    "LD-122",
    "The process can continue after it has loaded a plugin.",
    "The plugin is quarantined: after its code had run, the host could not finish its own work "
    "in that process, and could not do so in the application.",
    "Tell the plugin's author which step failed; the message names it. "
    "`modular-tf quarantine retry` tries the plugin again.",
)

WORKER_RUNS = Rule(
    "LD-140",
    "The worker process of a plugin runs as long as it is used.",
    "The calls under way fail; files that were open there are lost. Other plugins go on, and the "
    "next call starts a new process.",
    "Read how it ended in the message, and report that to the plugin's author.",
)
WORKER_ANSWERS = Rule(
    "LD-141",
    "A call in the worker process of a plugin returns within `call_timeout_s`.",
    "The process is ended, with all calls that are under way in it.",
    "Raise `call_timeout_s` where calls may take that long.",
)
WORKER_REPLIES_FIT = Rule(
    "LD-142",
    "The worker process of a plugin answers in the form that the host expects.",
    "The reply is not believed: the call fails, and its channel is closed.",
    "Report it: the plugin has damaged its own process.",
)
WORKER_HAS_FILE = Rule(
    "LD-143",
    "The worker process that opened a file or started a transaction still runs when that is used.",
    "It cannot be used any more. What was written to the file and not stored is lost; what was "
    "done in the transaction may be.",
    "Open the file again, or start another transaction.",
)
WORKER_STARTS = Rule(
    "LD-144",
    "A worker process can be started for a plugin.",
    "The plugin is not loaded.",
    'The message says why; `isolation = "none"` loads the plugin in this process.',
)
