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
#include "handler_text.h"

namespace {

using mtf::CallUnderWay;

constexpr size_t kStackSize = 64 << 10;
constexpr size_t kMostOfAPath = 4096;

struct FatalSignal {
  int number;
  const char* name;
  struct sigaction before;
};

FatalSignal fatal[] = {{SIGSEGV, "SIGSEGV", {}}, {SIGBUS, "SIGBUS", {}}, {SIGILL, "SIGILL", {}},
                       {SIGFPE, "SIGFPE", {}},   {SIGABRT, "SIGABRT", {}}, {SIGTRAP, "SIGTRAP", {}}};
char note_directory[kMostOfAPath] = "";
std::atomic<bool> is_watching{false};
std::atomic<bool> is_told{false};  // of one call in the life of a process
const int watching_forks = pthread_atfork(nullptr, nullptr, CallUnderWay::leave_all);

struct sigaction interrupt_before = {};
char interrupted_program[64] = "";
int interrupt_status = 0;
pid_t interrupt_owner = 0;
volatile sig_atomic_t interrupts = 0;

using Text = mtf::HandlerText<4 * kMostOfAPath>;

Text& add_call(Text& text, const CallUnderWay& call) {
  if (call.plugin != nullptr) text.add("plugin ").shown(call.plugin->name).add(", ");
  text.add(call.operation);
  if (call.subject != nullptr) text.add(" of '").shown(call.subject).add("'");
  if (call.plugin != nullptr) text.add(" (").shown(call.plugin->path).add(")");
  return text;
}

Text end_line, note_path, note;  // used by the thread that has set `is_told`
Text interrupt_line;             // of the main thread

void leave_note(const CallUnderWay& call, int number, int status) {
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

// A call without subject and plugin is not reported.
bool is_nameless(const CallUnderWay& call) {
  return call.plugin == nullptr && call.subject == nullptr;
}

void tell_of_end(const CallUnderWay* call, const char* how, int number, int status) {
  if (call == nullptr || is_nameless(*call) || is_told.exchange(true)) return;
  Text& line = end_line.start();
  line.add("modular_tf: ").add(how);
  if (number == 0) line.number(static_cast<unsigned char>(status)).add(")");
  add_call(line.add(" in "), *call).add(": the process ends [LD-130]\n");
  line.write_to(STDERR_FILENO);
  leave_note(*call, number, status);
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
    if (is_own(*info)) tell_of_end(CallUnderWay::of_this_thread(), which.name, number, 0);
    pass_on(which, info, context);
  }
  errno = found_errno;
}

void on_exit_called(int status, void*) {
  tell_of_end(CallUnderWay::of_this_thread(), "exit(", 0, status);
}

bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

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
  if (sigaction(which->number, nullptr, &which->before) != 0) return false;
  const struct sigaction& before = which->before;
  if (is_ignored(before)) return true;
  struct sigaction action = before;
  action.sa_sigaction = on_fatal;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | (before.sa_flags & (SA_RESTART | SA_NODEFER));
  return sigaction(which->number, &action, nullptr) == 0;
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
  if (is_watching.exchange(true)) return 0;
  if (is_main_thread()) make_stack();
  if (watching_forks != 0) return -1;
#ifdef __GLIBC__
  if (on_exit(on_exit_called, nullptr) != 0) return -1;
#endif
  for (FatalSignal& which : fatal) {
    if (!watch(&which)) return -1;
  }
  return 0;
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
