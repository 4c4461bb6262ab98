// Handlers of signals use nothing but what POSIX lets them use; those that write frames also what is safe
// in practice: glibc's unwinder, warmed up beforehand, and dladdr, whose lock is recursive. Where another
// thread holds it the report stays short, and the process that waits has a time limit.
#include "process_end.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "plugin_call.h"
#include "guard.h"
#include "oldest_call.h"
#include "plugin_code.h"
#include "library.h"

namespace {

using mtf::CallUnderWay;
using mtf::signal_place;
using mtf::SignalPlace;

pid_t own_thread() { return static_cast<pid_t>(syscall(SYS_gettid)); }
bool is_main_thread() { return own_thread() == getpid(); }

constexpr size_t kMostOfAPath = 4096;  // of a longer one the rest is not told

// Text that handlers compose and write: without the C library's formatting, which they may not use. What
// does not fit is left out. A large one is not for the stack: that of handlers may be smaller, and end where others' memory
// begins.
template <size_t kSize>
class HandlerText {
 public:
  HandlerText& start() {
    used_ = 0;
    return *this;
  }

  HandlerText& add(const char* words) {
    while (*words != '\0' && used_ < kSize - 1) bytes_[used_++] = *words++;
    bytes_[used_] = '\0';
    return *this;
  }

  HandlerText& number(uint64_t value) {
    char digits[21];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
      digits[--at] = static_cast<char>('0' + value % 10);
      value /= 10;
    } while (value != 0);
    return add(digits + at);
  }

  HandlerText& hexadecimal(const char* bytes, size_t size) {
    static constexpr char kDigits[] = "0123456789abcdef";
    for (size_t i = 0; i < size; ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      const char pair[] = {kDigits[byte >> 4], kDigits[byte & 15], '\0'};
      add(pair);
    }
    return *this;
  }

  // Without what could steer a terminal.
  HandlerText& shown(const char* text) {
    for (size_t left = kMostOfAPath; left > 0 && *text != '\0'; --left, ++text) {
      const auto byte = static_cast<unsigned char>(*text);
      const char one[] = {byte < 0x20 || byte == 0x7f ? '?' : *text, '\0'};
      add(one);
    }
    return *this;
  }

  const char* get() const { return bytes_; }

  void write_to(int descriptor) const {
    for (size_t done = 0; done < used_;) {
      const ssize_t written = write(descriptor, bytes_ + done, used_ - done);
      if (written > 0) {
        done += static_cast<size_t>(written);
      } else if (written == 0 || errno != EINTR) {
        return;
      }
    }
  }

 private:
  char bytes_[kSize] = "";
  size_t used_ = 0;
};

// -- where a process that tries a plugin ends or hangs ----------------------------------------------

constexpr int kMostFrames = 64;
constexpr size_t kMostOfAName = 1024;
constexpr uintptr_t kNearStackPointer = 1 << 20;  // a frame may be large
constexpr char kOwnDescriptors[] = "/proc/self/fd/";

// The parent waits about as long for the end of a report.
constexpr int kMostWaits = 250;
constexpr timespec kWait = {0, 10'000'000};

int report_descriptor = -1;
struct stat report_file = {};
pid_t reporting_process = 0;  // 0: none
pid_t asker = 0;  // the process that may ask: the one that started this
int expected_status = -1;  // of exit()
std::atomic<pid_t> reporter{0};  // the thread that is writing a report; 0: none

// Makes this thread the one that writes. While another writes, it waits: what it would do next may end
// the process. False: it is the one already, or the other takes too long.
bool claim(std::atomic<pid_t>& writer) {
  const pid_t self = own_thread();
  for (int waits = 0; waits < kMostWaits; ++waits) {
    pid_t other = 0;
    if (writer.compare_exchange_strong(other, self)) return true;
    if (other == self) return false;
    nanosleep(&kWait, nullptr);
  }
  return false;
}

// Whether the descriptor is still the report's: a plugin may have put a file of its own there.
bool has_report() {
  struct stat found = {};
  return fstat(report_descriptor, &found) == 0 && found.st_dev == report_file.st_dev &&
         found.st_ino == report_file.st_ino;
}

// Used by the reporter, whose stack for signals may be a small one of the plugin's.
using Line = HandlerText<4 * kMostOfAName + 128>;
Line report_line;
char name_of_frame[kMostOfAName];

void report(const Line& line) {
  if (has_report()) line.write_to(report_descriptor);
}

// Tells which thread this is: others may be in calls of the plugin at the same time.
void report_thread() {
  report(report_line.start().add("{\"thread\": ").number(static_cast<uint64_t>(own_thread())).add("}\n"));
}

// The lines of /proc/self/maps, read without the C library's streams. One at a time: of the reporter.
class MapsReader {
 public:
  MapsReader() : descriptor_(open("/proc/self/maps", O_RDONLY | O_CLOEXEC)) {}
  ~MapsReader() { close(descriptor_); }

  // A line without its end; what does not fit is left out. False at the end.
  bool next(char* line, size_t room) {
    size_t length = 0;
    for (char c; take(&c);) {
      if (c == '\n') {
        line[length] = '\0';
        return true;
      }
      if (length + 1 < room) line[length++] = c;
    }
    return false;
  }

 private:
  bool take(char* c) {
    if (at_ == end_) {
      const ssize_t size = read(descriptor_, bytes_, sizeof bytes_);
      if (size <= 0) return false;
      at_ = 0;
      end_ = static_cast<size_t>(size);
    }
    *c = bytes_[at_++];
    return true;
  }

  int descriptor_;
  inline static char bytes_[4096];
  size_t at_ = 0, end_ = 0;
};

// The name of what is mapped at `base`, as the kernel knows it; the length, 0 where there is none.
size_t mapped_name(uintptr_t base, char* name, size_t room) {
  MapsReader maps;
  static char line[kMostOfAName + 128];
  while (maps.next(line, sizeof line)) {
    if (std::strtoul(line, nullptr, 16) != base) continue;
    const char* path = std::strchr(line, '/');
    const size_t whole = path == nullptr ? 0 : std::strlen(path);
    const size_t kept = whole < room ? whole : room;
    if (kept != 0) std::memcpy(name, path, kept);
    return kept;
  }
  return 0;
}

// What is mapped by its descriptor is called by that one's path, which tells the user nothing.
size_t name_of(const Dl_info& info, char* name, size_t room) {
  const char* path = info.dli_fname;
  if (std::strncmp(path, kOwnDescriptors, sizeof kOwnDescriptors - 1) == 0) {
    const size_t found = mapped_name(reinterpret_cast<uintptr_t>(info.dli_fbase), name, room);
    if (found != 0) return found;
  }
  const size_t whole = std::strlen(path);
  const size_t kept = whole < room ? whole : room;
  std::memcpy(name, path, kept);
  return kept;
}

// `address` is told; `inside` lies within the function, where a return address may lie behind it.
void write_frame(uintptr_t address, uintptr_t inside) {
  Line& line = report_line.start().add("{\"frame\": [\"");
  Dl_info info;
  uintptr_t start = 0;
  if (dladdr(reinterpret_cast<void*>(inside), &info) != 0 && info.dli_fname != nullptr) {
    line.hexadecimal(name_of_frame, name_of(info, name_of_frame, sizeof name_of_frame)).add("\", \"");
    start = reinterpret_cast<uintptr_t>(info.dli_fbase);
    if (info.dli_sname != nullptr) {
      line.hexadecimal(info.dli_sname, strnlen(info.dli_sname, kMostOfAName));
      start = reinterpret_cast<uintptr_t>(info.dli_saddr);
    }
  } else {
    line.add("\", \"");
  }
  report(line.add("\", ").number(address - start).add("]}\n"));
}

void write_frames(void* const* frames, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const auto address = reinterpret_cast<uintptr_t>(frames[i]);
    write_frame(address, address - 1);
  }
}

// Writes where a signal came; what lies above it on the stack is ours.
void write_trace_from(const SignalPlace& place) {
  void* frames[kMostFrames];
  const int count = backtrace(frames, kMostFrames);
  int at = 0;
  while (at < count && reinterpret_cast<uintptr_t>(frames[at]) != place.instruction) ++at;
  write_frame(place.instruction, place.instruction);
  if (at + 1 < count) {
    write_frames(frames, at + 1, count);
  } else if (place.caller != 0) {
    write_frame(place.caller, place.caller - 1);  // a jump to nowhere: nothing unwinds it
  }
}

void write_end() { report(report_line.start().add("{\"traced\": 1}\n")); }

bool is_overflow(int number, const siginfo_t* info, const SignalPlace& place) {
  if (number != SIGSEGV || place.stack == 0) return false;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  return address - (place.stack - kNearStackPointer) < 2 * kNearStackPointer;
}

void report_signal(int number, const siginfo_t* info, const void* context, int found_errno) {
  if (getpid() != reporting_process || !claim(reporter)) return;  // for good: the process ends
  const SignalPlace place = signal_place(context);
  report_thread();
  Line& line = report_line.start();
  line.add("{\"signal\": ").number(static_cast<uint64_t>(number));
  line.add(", \"errno\": ").number(static_cast<uint64_t>(found_errno));
  line.add(", \"overflow\": ").number(is_overflow(number, info, place) ? 1 : 0);
  report(line.add("}\n"));
  write_trace_from(place);
  write_end();
}

// -- what a call into a plugin ends -----------------------------------------------------------------

constexpr int kCancelled = 32;  // the C library's own signal
constexpr int kHangs = SIGVTALRM;  // of no use any more where a process exits
constexpr timespec kTimeToAnswer = {1, 0};

char note_directory[kMostOfAPath] = "";
std::atomic<bool> is_watching{false};
std::atomic<pid_t> teller{0};  // the thread that tells of the one end in the life of a process; 0: none
pid_t owner = 0;  // a child that is forked later is another process
std::atomic<bool> exits{false};
const int watching_forks = pthread_atfork(nullptr, nullptr, CallUnderWay::leave_all);

using Text = HandlerText<4 * kMostOfAPath>;

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

Text end_line, note_path, note;  // used by the teller

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
  if (call.subject != nullptr) note.hexadecimal(call.subject, strnlen(call.subject, kMostOfAPath));
  note.add("\", \"signal\": ").number(static_cast<uint64_t>(number));
  note.add(", \"status\": ").number(static_cast<unsigned char>(status));
  note.add(", \"pid\": ").number(pid).add(", \"time\": ").number(seconds).add("}\n");
  note.write_to(file);
  close(file);
}

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
  if (!claim(teller)) return;
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

// -- fatal signals ----------------------------------------------------------------------------------

struct FatalSignal {
  int number;
  const char* name;
  struct sigaction before;  // the default where the process tries a plugin
};

FatalSignal fatal[] = {{SIGSEGV, "SIGSEGV", {}}, {SIGBUS, "SIGBUS", {}}, {SIGILL, "SIGILL", {}},
                       {SIGFPE, "SIGFPE", {}},   {SIGABRT, "SIGABRT", {}}, {SIGTRAP, "SIGTRAP", {}},
                       {SIGSYS, "SIGSYS", {}}};

// Returns where the handler that was there before returns, too.
void pass_on(int number, const struct sigaction& before, siginfo_t* info, void* context) {
  if (is_default(before) || (before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
    signal(number, SIG_DFL);
  }
  if (is_default(before)) {
    raise(number);  // takes effect on return
  } else if ((before.sa_flags & SA_SIGINFO) != 0) {
    before.sa_sigaction(number, info, context);
  } else {
    before.sa_handler(number);
  }
}

void on_fatal(int number, siginfo_t* info, void* context) {
  const int found_errno = errno;
  const char* name = "a signal";
  struct sigaction before = {};
  for (const FatalSignal& which : fatal) {
    if (which.number != number) continue;
    name = which.name;
    before = which.before;
  }
  report_signal(number, info, context, found_errno);
  Place place = {};
  if (is_watching && is_own(*info) && place_of_end(context, &place)) tell_of_end(place, name, number, 0);
  pass_on(number, before, info, context);
  errno = found_errno;
}

using Handler = void(int, siginfo_t*, void*);

// Puts a handler in place of `before`, whose mask stays. `flags` beside those that each of ours has.
bool install(int number, Handler* handler, const struct sigaction& before, int flags) {
  struct sigaction action = before;
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | flags;
  return sigaction(number, &action, nullptr) == 0;
}

bool is_handled_by(const struct sigaction& action, Handler* handler) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == handler;
}

bool watch_again() {
  bool all = true;
  for (FatalSignal& which : fatal) {
    struct sigaction before = {};
    const bool is_known = sigaction(which.number, nullptr, &before) == 0;
    if (is_known && (is_handled_by(before, on_fatal) || is_ignored(before))) continue;
    which.before = before;
    const int kept_flags = before.sa_flags & (SA_RESTART | SA_NODEFER);
    all = is_known && install(which.number, on_fatal, before, kept_flags) && all;
  }
  return all;
}

// A stack for the handlers of this thread: the plugin's may be what has run out. With `replaces` also
// where it has one.
bool make_stack(size_t size, bool replaces) {
  stack_t found = {};
  const bool has_one = sigaltstack(nullptr, &found) == 0 && (found.ss_flags & SS_DISABLE) == 0;
  if (has_one && !replaces) return true;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = size;
  return sigaltstack(&stack, nullptr) == 0;
}

// -- the question of the process that watches this one ----------------------------------------------

std::atomic<bool> passed_on{false};

// The kernel gives the question to any thread; the one that hangs in a call is to answer it.
bool pass_question_on(int number) {
  const pid_t thread = mtf::thread_of_oldest_call();
  if (thread == 0 || thread == own_thread()) return false;
  passed_on = true;
  return syscall(SYS_tgkill, getpid(), thread, number) == 0;
}

// Only the process that watches this one asks; from anybody else the signal means what it always
// does, which is the end.
void on_question(int number, siginfo_t* info, void* context) {
  const bool is_passed_on = info->si_code == SI_TKILL && passed_on.exchange(false);
  if (!is_passed_on && (info->si_code != SI_USER || info->si_pid != asker)) {
    on_fatal(number, info, context);
    return;
  }
  const int found_errno = errno;
  if (!is_passed_on && pass_question_on(number)) {
    errno = found_errno;
    return;
  }
  if (getpid() == reporting_process && claim(reporter)) {
    report_thread();
    report(report_line.start().add("{\"asked\": 1}\n"));
    write_trace_from(signal_place(context));
    write_end();
    reporter = 0;
  }
  errno = found_errno;
}

void report_exit(int status, void*) {
  if (getpid() != reporting_process || status == expected_status || !claim(reporter)) return;
  const auto shown = static_cast<unsigned char>(status);
  report_thread();
  report(report_line.start().add("{\"exits\": ").number(shown).add("}\n"));
  void* frames[kMostFrames];
  write_frames(frames, 1, backtrace(frames, kMostFrames));
  write_end();
}

// -- exit() and the end of the main thread in a call -------------------------------------------------

void tell_of_exit(int status, void*) {
  Place place = {};
  if (place_of_end(nullptr, &place)) tell_of_end(place, "exit(", 0, status);
}

constexpr char kMainThreadEnds[] = "pthread_cancel() or pthread_exit() of the main thread";

constexpr size_t kMostCandidates = 8;

// Nothing tells which thread has cancelled this one, or whose code that was: nobody is blamed, and no note
// is left. A value of the main thread's, which is destroyed where that ends before the process.
void on_main_thread_end(void*) {
  if (getpid() != owner) return;
  if (!claim(teller)) return;
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

// In a call into a plugin.
void on_thread_ended() noexcept {
  Place place = {};
  if (!is_main_thread() || !place_of_end(nullptr, &place)) return;
  tell_of_end(place, kMainThreadEnds, kCancelled, 0);
}

// -- an exit that hangs ----------------------------------------------------------------------------

timespec exit_patience = {};
int exit_status = 0;
pid_t exiting_thread = 0;

void end_hanging_exit(const void* context) {
  Place place = {};
  if (place_of_end(context, &place)) {
    tell_of_end(place, "exit() hangs", kHangs, 0);
  } else if (claim(teller)) {
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

void on_exit_begins(int status, void*) {
  if (getpid() != owner) return;
  if (is_watching) watch_again();  // Python's handlers went, and put back what was there before
  if (exit_patience.tv_sec == 0 && exit_patience.tv_nsec == 0) return;
  exit_status = status;
  exiting_thread = own_thread();
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // it hears none of the application's
  pthread_t thread;
  if (pthread_create(&thread, nullptr, watch_exit, nullptr) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// -- Ctrl-C -----------------------------------------------------------------------------------------

struct sigaction interrupt_before = {};
char interrupted_program[64] = "";
int interrupt_status = 0;
pid_t interrupt_owner = 0;
volatile sig_atomic_t interrupts = 0;
Text interrupt_line;  // of the main thread

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
  pass_on(number, interrupt_before, info, context);
  errno = found_errno;
}

#ifdef __GLIBC__
// As exit() it waits for no thread that holds a stream.
void leave(int status, void*) {
  fcloseall();
  _exit(status);
}

// Handlers run last registered first, and only glibc's on_exit is told the status.
int at_exit(void (*handler)(int, void*)) { return on_exit(handler, nullptr) == 0 ? 0 : -1; }
#endif

}  // namespace

extern "C" {

int mtf_report_crashes(int report, int question) {
  constexpr size_t kStackSize = 128 << 10;
  mtf::prepare_stack_traces();
  report_descriptor = report;
  if (fstat(report, &report_file) != 0) return -1;
  reporting_process = getpid();
  asker = getppid();
  const struct sigaction none = {};
  if (!make_stack(kStackSize, true) || !install(question, on_question, none, SA_RESTART)) return -1;
  for (FatalSignal& which : fatal) {
    which.before = none;
    if (!install(which.number, on_fatal, none, SA_RESTART)) return -1;
  }
#ifdef __GLIBC__
  return at_exit(report_exit);
#else
  return 0;
#endif
}

void mtf_expect_exit(int status) { expected_status = status; }

void mtf_signal_handlers(uintptr_t* handlers, int count) {
  for (int number = 0; number < count; ++number) {
    struct sigaction action = {};
    const bool known = sigaction(number, nullptr, &action) == 0;
    Handler* const handler = known ? action.sa_sigaction : nullptr;
    const bool ours = handler == on_fatal || handler == on_question;
    handlers[number] = ours ? 0 : reinterpret_cast<uintptr_t>(handler);
  }
}

int mtf_tell_of_ended_calls(const char* directory) {
  if (note_directory[0] == '\0' && std::strlen(directory) < sizeof note_directory / 2) {
    std::strcpy(note_directory, directory);
  }
  owner = getpid();
  if (is_watching.exchange(true)) return 0;
  mtf::prepare_stack_traces();
  mtf::on_ended_thread = on_thread_ended;
  if (watching_forks != 0) return -1;
#ifdef __GLIBC__
  if (at_exit(tell_of_exit) != 0) return -1;
#endif
  return watch_again() ? 0 : -1;
}

int mtf_watch_main_thread(int ends_process) {
  constexpr size_t kStackSize = 64 << 10;
  make_stack(kStackSize, false);
  if (ends_process == 0) return 0;
  static pthread_key_t key = {};
  static const int made = pthread_key_create(&key, on_main_thread_end);
  return made == 0 && pthread_setspecific(key, &key) == 0 ? 0 : -1;
}

int mtf_process_exits(uint64_t most_milliseconds) {
  exit_patience.tv_sec = static_cast<time_t>(most_milliseconds / 1000);
  exit_patience.tv_nsec = static_cast<long>(most_milliseconds % 1000 * 1'000'000);
  owner = getpid();
  exits = true;
  mtf::prepare_stack_traces();
#ifdef __GLIBC__
  return at_exit(on_exit_begins);
#else
  return -1;
#endif
}

int mtf_leave_on_second_interrupt(const char* program, int status) {
  struct sigaction found = {};
  if (sigaction(SIGINT, nullptr, &found) != 0) return -1;
  if (is_handled_by(found, on_interrupt) || is_ignored(found) || is_default(found)) return 0;
  interrupt_before = found;
  interrupt_status = status;
  interrupt_owner = getpid();
  std::snprintf(interrupted_program, sizeof interrupted_program, "%s", program);
  return install(SIGINT, on_interrupt, found, found.sa_flags) ? 0 : -1;
}

int mtf_exit_without_inherited_destructors(void) {
#ifdef __GLIBC__
  return at_exit(leave);
#else
  return -1;
#endif
}

void mtf_flush_output(void) {
  if (ftrylockfile(stdout) != 0) return;
  std::fflush(stdout);
  funlockfile(stdout);
}

int mtf_start_ended_child(void) {
  const pid_t child = vfork();
  if (child == 0) _exit(0);
  return child;
}

}  // extern "C"
