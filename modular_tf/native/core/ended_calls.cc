// The handlers use nothing but what POSIX lets handlers use.
#include "ended_calls.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "call_under_way.h"
#include "guard.h"
#include "handler_text.h"
#include "plugin_code.h"
#include "protected_tables.h"

namespace {

using mtf::CallUnderWay;

constexpr size_t kStackSize = 64 << 10;
constexpr size_t kMostOfAPath = 4096;
constexpr int kCancelled = 32;  // the C library's own signal
constexpr int kHangs = SIGVTALRM;  // of no use any more where a process exits
constexpr timespec kTimeToAnswer = {1, 0};

struct FatalSignal {
  int number;
  const char* name;
  struct sigaction before;
};

FatalSignal fatal[] = {{SIGSEGV, "SIGSEGV", {}}, {SIGBUS, "SIGBUS", {}}, {SIGILL, "SIGILL", {}},
                       {SIGFPE, "SIGFPE", {}},   {SIGABRT, "SIGABRT", {}}, {SIGTRAP, "SIGTRAP", {}}};
char note_directory[kMostOfAPath] = "";
std::atomic<bool> is_watching{false};
std::atomic<bool> is_told{false};  // of one end in the life of a process
pid_t owner = 0;  // a child that is forked later is another process
std::atomic<bool> exits{false};
const int watching_forks = pthread_atfork(nullptr, nullptr, CallUnderWay::leave_all);

struct sigaction interrupt_before = {};
char interrupted_program[64] = "";
int interrupt_status = 0;
pid_t interrupt_owner = 0;
volatile sig_atomic_t interrupts = 0;

using Text = mtf::HandlerText<4 * kMostOfAPath>;

// What the process ends in: a call, or code of a plugin outside of calls.
struct Place {
  const mtf_plugin* plugin;
  const char* operation;
  const char* subject;
};

template <class Call>
Text& add_call(Text& text, const Call& call) {
  if (call.plugin != nullptr) text.add("plugin ").shown(call.plugin->name).add(", ");
  text.add(call.operation);
  if (call.subject != nullptr) text.add(" of '").shown(call.subject).add("'");
  if (call.plugin != nullptr) text.add(" (").shown(call.plugin->path).add(")");
  return text;
}

Text end_line, note_path, note;  // used by the thread that has set `is_told`
Text interrupt_line;             // of the main thread

void leave_note(const Place& call, int number, int status) {
  if (note_directory[0] == '\0' || call.plugin == nullptr || call.plugin->record[0] == '\0') return;
  timespec now = {};
  clock_gettime(CLOCK_REALTIME, &now);
  const auto seconds = static_cast<uint64_t>(now.tv_sec);
  const auto pid = static_cast<uint64_t>(getpid());
  Text& path = note_path.start();
  path.add(note_directory).add("/").number(seconds).add(".");
  path.number(static_cast<uint64_t>(now.tv_nsec)).add("-").number(pid).add(".ended");
  const int file = open(path.get(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (file < 0) return;
  note.start().add(call.plugin->record).add(", \"call\": \"").add(call.operation);
  note.add("\", \"subject\": \"");
  if (call.subject != nullptr) note.hexadecimal(call.subject, std::strlen(call.subject));
  note.add("\", \"signal\": ").number(static_cast<uint64_t>(number));
  note.add(", \"status\": ").number(static_cast<unsigned char>(status));
  note.add(", \"pid\": ").number(pid).add(", \"time\": ").number(seconds).add("}\n");
  note.write_to(file);
  close(file);
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

// The call that this thread is in, or what of a plugin's code it runs outside of calls. A call without
// subject and plugin is not reported. False: neither.
bool place_of_end(const void* context, Place* place) {
  const CallUnderWay* call = CallUnderWay::of_this_thread();
  if (call != nullptr && (call->plugin != nullptr || call->subject != nullptr)) {
    *place = {call->plugin, call->operation, call->subject};
    return true;
  }
  // A child that was forked in a plugin's code has it on its stack, and ends as the plugin wants.
  if (call != nullptr || getpid() != owner) return false;
  const mtf_plugin* plugin = mtf::plugin_on_stack(context);
  const char* own = !is_main_thread() ? "a thread of its own"
                    : exits           ? "an exit handler or destructor"
                                      : "code of its own outside of calls";
  *place = {plugin, own, nullptr};
  return plugin != nullptr;
}

constexpr char kTablesOverwritten[] =
    ". Write-protected tables of plugins were overwritten before, by code that is not known: no plugin"
    " is blamed; isolation = \"process\" in the configuration separates plugins";

void tell_of_end(const Place& place, const char* how, int number, int status) {
  if (is_told.exchange(true)) return;
  Text& line = end_line.start();
  line.add("modular_tf: ").add(how);
  if (number == 0) line.number(static_cast<unsigned char>(status)).add(")");
  add_call(line.add(" in "), place).add(": the process ends");
  // A call by an overwritten table ends wherever somebody else wanted.
  const bool is_blamed = !mtf::tables_were_overwritten();
  line.add(is_blamed ? "" : kTablesOverwritten).add(" [LD-130]\n").write_to(STDERR_FILENO);
  if (is_blamed) leave_note(place, number, status);
}

bool is_own(const siginfo_t& info) { return info.si_code > 0 || info.si_pid == getpid(); }

// To the kernel they are no handlers with SA_SIGINFO either.
bool is_default(const struct sigaction& action) { return action.sa_handler == SIG_DFL; }
bool is_ignored(const struct sigaction& action) { return action.sa_handler == SIG_IGN; }

// Returns where the handler that was there before returns, too.
void pass_on(const FatalSignal& which, siginfo_t* info, void* context) {
  const struct sigaction& before = which.before;
  if (is_default(before) || (before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    signal(which.number, SIG_DFL);
  }
  if (is_default(before)) {
    raise(which.number);  // takes effect on return
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(which.number, info, context);
  } else {
    before.sa_handler(which.number);
  }
}

void on_fatal(int number, siginfo_t* info, void* context) {
  const int found_errno = errno;
  for (const FatalSignal& which : fatal) {
    if (which.number != number) continue;
    Place place = {};
    if (is_own(*info) && place_of_end(context, &place)) {
      tell_of_end(place, which.name, number, 0);
    }
    pass_on(which, info, context);
  }
  errno = found_errno;
}

void on_exit_called(int status, void*) {
  Place place = {};
  if (place_of_end(nullptr, &place)) tell_of_end(place, "exit(", 0, status);
}

constexpr char kMainThreadEnds[] = "pthread_cancel() or pthread_exit() of the main thread";

constexpr size_t kMostCandidates = 8;

// Nothing tells which thread has cancelled this one, or whose code that was: nobody is blamed, and no note
// is left. A value of the main thread's, which is destroyed where that ends before the process.
void on_main_thread_end(void*) {
  if (getpid() != owner) return;
  if (is_told.exchange(true)) return;
  const mtf_plugin* found[kMostCandidates];
  const size_t count = mtf::plugins_that_may_cancel(found, kMostCandidates);
  Text& line = end_line.start();
  line.add("modular_tf: ").add(kMainThreadEnds).add(": the process ends");
  for (size_t i = 0; i < count; ++i) {
    line.add(i == 0 ? "; possibly by plugin " : ", or plugin ").shown(found[i]->name);
    line.add(" (").shown(found[i]->path).add(")");
  }
  line.add(" [LD-130]\n").write_to(STDERR_FILENO);
}

// -- an exit that hangs ----------------------------------------------------------------------------

timespec exit_patience = {};
int exit_status = 0;
pid_t exiting_thread = 0;

void end_hanging_exit(const void* context) {
  Place place = {};
  if (place_of_end(context, &place)) {
    tell_of_end(place, "exit() hangs", kHangs, 0);
  } else if (!is_told.exchange(true)) {
    Text& line = end_line.start();
    line.add("modular_tf: exit() hangs: the process ends\n").write_to(STDERR_FILENO);
  }
  _exit(exit_status);
}

void on_exit_late(int, siginfo_t*, void* context) { end_hanging_exit(context); }

void* watch_exit(void*) {
  timespec left = exit_patience;
  while (nanosleep(&left, &left) != 0 && errno == EINTR) continue;
  // The thread that exits tells where it is, if it hears signals still.
  struct sigaction action = {};
  action.sa_sigaction = on_exit_late;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  if (sigaction(kHangs, &action, nullptr) == 0) {
    syscall(SYS_tgkill, getpid(), exiting_thread, kHangs);
    nanosleep(&kTimeToAnswer, nullptr);
  }
  end_hanging_exit(nullptr);
  return nullptr;
}

// In a call into a plugin.
void on_thread_ended() noexcept {
  Place place = {};
  if (!is_main_thread() || !place_of_end(nullptr, &place)) return;
  tell_of_end(place, kMainThreadEnds, kCancelled, 0);
}

bool watch_again();

void on_exit_begins(int status, void*) {
  if (getpid() != owner) return;
  if (is_watching) watch_again();  // Python's handlers went, and put back what was there before
  if (exit_patience.tv_sec == 0 && exit_patience.tv_nsec == 0) return;
  exit_status = status;
  exiting_thread = static_cast<pid_t>(syscall(SYS_gettid));
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // it hears none of the application's
  pthread_t thread;
  if (pthread_create(&thread, nullptr, watch_exit, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// -- setting up ------------------------------------------------------------------------------------

// A stack for the handlers, where the thread has none: the plugin's may be what has run out.
void make_stack() {
  stack_t found = {};
  if (sigaltstack(nullptr, &found) != 0 || (found.ss_flags & SS_DISABLE) == 0) return;
  void* memory =
      mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return;
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kStackSize;
  sigaltstack(&stack, nullptr);
}

bool watch(FatalSignal* which) {
  struct sigaction before = {};
  if (sigaction(which->number, nullptr, &before) != 0) return false;
  const bool is_ours = (before.sa_flags & SA_SIGINFO) != 0 && before.sa_sigaction == on_fatal;
  if (is_ours || is_ignored(before)) return true;
  which->before = before;
  struct sigaction action = before;
  action.sa_sigaction = on_fatal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_RESTART | SA_NODEFER));
  return sigaction(which->number, &action, nullptr) == 0;
}

bool watch_again() {
  bool all = true;
  for (FatalSignal& which : fatal) all = watch(&which) && all;
  return all;
}

void on_interrupt(int number, siginfo_t* info, void* context) {
  const int found_errno = errno;
  const bool is_here = getpid() == interrupt_owner;  // a forked child has handlers of its own
  if (is_here && !is_main_thread()) {
    syscall(SYS_tgkill, interrupt_owner, interrupt_owner, number);
    errno = found_errno;
    return;
  }
  const CallUnderWay* call = CallUnderWay::of_this_thread();
  const bool is_second = is_here && interrupts++ > 0;
  if (is_here && (call != nullptr || is_second)) {
    Text& line = interrupt_line.start();
    line.add(interrupted_program).add(is_second ? ": left" : ": waiting");
    if (call != nullptr) add_call(line.add(is_second ? " in " : " for "), *call);
    line.add(is_second ? ", on the second Ctrl-C\n" : "; Ctrl-C again leaves at once\n");
    line.write_to(STDERR_FILENO);
  }
  if (is_second) _exit(interrupt_status);
  if ((interrupt_before.sa_flags & SA_SIGINFO) != 0) {
    interrupt_before.sa_sigaction(number, info, context);
  } else {
    interrupt_before.sa_handler(number);
  }
  errno = found_errno;
}

}  // namespace

extern "C" int mtf_tell_of_ended_calls(const char* directory) {
  if (note_directory[0] == '\0' && std::strlen(directory) < sizeof note_directory / 2) {
    std::strcpy(note_directory, directory);
  }
  owner = getpid();
  if (is_watching.exchange(true)) return 0;
  mtf::prepare_stack_traces();
  mtf::on_ended_thread = on_thread_ended;
  if (watching_forks != 0) return -1;
#ifdef __GLIBC__
  if (on_exit(on_exit_called, nullptr) != 0) return -1;
#endif
  return watch_again() ? 0 : -1;
}

extern "C" int mtf_watch_main_thread(int ends_process) {
  make_stack();
  if (ends_process == 0) return 0;
  static pthread_key_t key = {};
  static const int made = pthread_key_create(&key, on_main_thread_end);
  return made == 0 && pthread_setspecific(key, &key) == 0 ? 0 : -1;
}

extern "C" int mtf_process_exits(uint64_t most_milliseconds) {
  exit_patience.tv_sec = static_cast<time_t>(most_milliseconds / 1000);
  exit_patience.tv_nsec = static_cast<long>(most_milliseconds % 1000 * 1'000'000);
  owner = getpid();
  exits = true;
  mtf::prepare_stack_traces();
#ifdef __GLIBC__
  return on_exit(on_exit_begins, nullptr) == 0 ? 0 : -1;
#else
  return -1;
#endif
}

extern "C" int mtf_leave_on_second_interrupt(const char* program, int status) {
  struct sigaction found = {};
  if (sigaction(SIGINT, nullptr, &found) != 0) return -1;
  const bool is_ours = (found.sa_flags & SA_SIGINFO) != 0 && found.sa_sigaction == on_interrupt;
  if (is_ours || is_ignored(found) || is_default(found)) return 0;
  interrupt_before = found;
  interrupt_status = status;
  interrupt_owner = getpid();
  std::snprintf(interrupted_program, sizeof interrupted_program, "%s", program);
  struct sigaction action = found;
  action.sa_sigaction = on_interrupt;
  action.sa_flags = found.sa_flags | SA_SIGINFO | SA_ONSTACK;
  return sigaction(SIGINT, &action, nullptr) == 0 ? 0 : -1;
}
