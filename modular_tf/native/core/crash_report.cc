// The handlers use what is safe in practice though not by the letter: glibc's unwinder, warmed up
// beforehand, and dladdr, whose lock is recursive. Where another thread holds it the report stays
// short, and the process that waits has a time limit.
#include "crash_report.h"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "handler_text.h"
#include "library.h"
#include "oldest_call.h"
#include "signal_place.h"

namespace {

constexpr int kFatal[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGTRAP, SIGSYS};
constexpr int kMostFrames = 64;
constexpr size_t kMostOfAName = 1024;
constexpr size_t kStackSize = 128 << 10;
constexpr uintptr_t kNearStackPointer = 1 << 20;  // a frame may be large
constexpr char kOwnDescriptors[] = "/proc/self/fd/";

// The parent waits about as long for the end of a report.
constexpr int kMostWaits = 250;
constexpr timespec kWait = {0, 10'000'000};

int report_descriptor = -1;
struct stat report_file = {};
pid_t owner = 0;
pid_t asker = 0;  // the process that may ask: the one that started this
int expected_status = -1;  // of exit()
std::atomic<pid_t> reporter{0};  // the thread that is writing a report; 0: none

// Makes this thread the one that writes a report. While another writes, it waits: what it would do
// next may end the process. False: it is the one already, or the other takes too long.
bool claim_report() {
  const auto self = static_cast<pid_t>(syscall(SYS_gettid));
  for (int waits = 0; waits < kMostWaits; ++waits) {
    pid_t other = 0;
    if (reporter.compare_exchange_strong(other, self)) return true;
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

using Line = mtf::HandlerText<4 * kMostOfAName + 128>;

void report(const Line& line) {
  if (has_report()) line.write_to(report_descriptor);
}

// Tells which thread this is: others may be in calls of the plugin at the same time.
void report_thread() {
  const auto self = static_cast<uint64_t>(syscall(SYS_gettid));
  report(Line().add("{\"thread\": ").number(self).add("}\n"));
}

// The lines of /proc/self/maps, read without the C library's streams.
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
  char bytes_[4096];
  size_t at_ = 0, end_ = 0;
};

// The name of what is mapped at `base`, as the kernel knows it; the length, 0 where there is none.
size_t mapped_name(uintptr_t base, char* name, size_t room) {
  MapsReader maps;
  char line[kMostOfAName + 128];
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
  Line line;
  line.add("{\"frame\": [\"");
  Dl_info info;
  uintptr_t start = 0;
  if (dladdr(reinterpret_cast<void*>(inside), &info) != 0 && info.dli_fname != nullptr) {
    char name[kMostOfAName];
    line.hexadecimal(name, name_of(info, name, sizeof name)).add("\", \"");
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

using Place = mtf::SignalPlace;

void write_frames(void* const* frames, int begin, int end) {
  for (int i = begin; i < end; ++i) {
    const auto address = reinterpret_cast<uintptr_t>(frames[i]);
    write_frame(address, address - 1);
  }
}

// Writes where a signal came; what lies above it on the stack is ours.
void write_trace_from(const Place& place) {
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

void write_end() { report(Line().add("{\"traced\": 1}\n")); }

bool is_overflow(int number, const siginfo_t* info, const Place& place) {
  if (number != SIGSEGV || place.stack == 0) return false;
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  return address - (place.stack - kNearStackPointer) < 2 * kNearStackPointer;
}

void on_fatal(int number, siginfo_t* info, void* context) {
  const int found_errno = errno;
  if (getpid() == owner && claim_report()) {  // for good: the process ends
    const Place place = mtf::signal_place(context);
    report_thread();
    Line line;
    line.add("{\"signal\": ").number(static_cast<uint64_t>(number));
    line.add(", \"errno\": ").number(static_cast<uint64_t>(found_errno));
    line.add(", \"overflow\": ").number(is_overflow(number, info, place) ? 1 : 0);
    report(line.add("}\n"));
    write_trace_from(place);
    write_end();
  }
  signal(number, SIG_DFL);
  raise(number);  // takes effect on return
  errno = found_errno;
}

std::atomic<bool> passed_on{false};

// The kernel gives the question to any thread; the one that hangs in a call is to answer it.
bool pass_on(int number) {
  const pid_t thread = mtf::thread_of_oldest_call();
  if (thread == 0 || thread == static_cast<pid_t>(syscall(SYS_gettid))) return false;
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
  if (!is_passed_on && pass_on(number)) {
    errno = found_errno;
    return;
  }
  if (getpid() == owner && claim_report()) {
    report_thread();
    report(Line().add("{\"asked\": 1}\n"));
    write_trace_from(mtf::signal_place(context));
    write_end();
    reporter = 0;
  }
  errno = found_errno;
}

void on_exit_called(int status, void*) {
  if (getpid() != owner || status == expected_status || !claim_report()) return;
  const auto shown = static_cast<unsigned char>(status);
  report_thread();
  report(Line().add("{\"exits\": ").number(shown).add("}\n"));
  void* frames[kMostFrames];
  write_frames(frames, 1, backtrace(frames, kMostFrames));
  write_end();
}

// A stack of its own for the handlers: the plugin's may be what has run out.
bool make_stack() {
  void* memory =
      mmap(nullptr, kStackSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kStackSize;
  return sigaltstack(&stack, nullptr) == 0;
}

using Handler = void(int, siginfo_t*, void*);

bool handle(int number, Handler* handler) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  return sigaction(number, &action, nullptr) == 0;
}

}  // namespace

extern "C" int mtf_report_crashes(int report, int question) {
  void* warm[4];
  backtrace(warm, 4);
  report_descriptor = report;
  if (fstat(report, &report_file) != 0) return -1;
  owner = getpid();
  asker = getppid();
  if (!make_stack() || !handle(question, on_question)) return -1;
  for (const int number : kFatal)
    if (!handle(number, on_fatal)) return -1;
#ifdef __GLIBC__
  return on_exit(on_exit_called, nullptr) == 0 ? 0 : -1;
#else
  return 0;
#endif
}

extern "C" void mtf_expect_exit(int status) { expected_status = status; }

extern "C" void mtf_signal_handlers(uintptr_t* handlers, int count) {
  for (int number = 0; number < count; ++number) {
    struct sigaction action = {};
    const bool known = sigaction(number, nullptr, &action) == 0;
    Handler* const handler = known ? action.sa_sigaction : nullptr;
    const bool ours = handler == on_fatal || handler == on_question;
    handlers[number] = ours ? 0 : reinterpret_cast<uintptr_t>(handler);
  }
}
