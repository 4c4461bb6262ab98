#include "call_trace.h"

#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <string>

#include "call_measure.h"
#include "fork_lock.h"
#include "trace_event.h"

namespace {

constexpr char kClose[] = "\n]\n";

// Writes all of `text`, at `place` or, where that is negative, behind what was written; an errno.
int write_all(int file, const std::string& text, off_t place) {
  size_t done = 0;
  while (done < text.size()) {
    const char* const rest = text.data() + done;
    const size_t size = text.size() - done;
    const ssize_t count = place < 0 ? write(file, rest, size)
                                    : pwrite(file, rest, size, place + static_cast<off_t>(done));
    if (count < 0 && errno != EINTR) return errno;
    if (count > 0) done += static_cast<size_t>(count);
  }
  return 0;
}

// The trace of the process, one at a time. In a regular file each event takes the place of what
// closes the array, and closes it again; what cannot be written over is closed at the end.
class Trace {
 public:
  // An errno.
  int begin(int file, uint64_t* number) {
    const mtf::LockGuard guard(lock_);
    if (file_ >= 0) return EBUSY;
    struct stat facts = {};
    if (fstat(file, &facts) != 0) return errno;
    is_regular_ = S_ISREG(facts.st_mode);
    if (is_regular_ && ftruncate(file, 0) != 0) return errno;
    end_ = 0;
    failure_ = put(file, "[");
    if (failure_ != 0) return failure_;
    is_first_ = true;
    file_ = file;
    *number = ++number_;
    mtf::measured.fetch_or(mtf::kMeasureTrace);
    return 0;
  }

  int end(uint64_t number) {
    const mtf::LockGuard guard(lock_);
    if (file_ < 0 || number != number_) return 0;
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
    const int file = file_;
    file_ = -1;
    if (failure_ == 0 && !is_regular_) failure_ = write_all(file, kClose, -1);
    return failure_;
  }

  void add(const mtf::CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns, int code) {
    std::string event = ",\n";
    mtf::add_event(event, call, begin_ns, end_ns, code);
    const mtf::LockGuard guard(lock_);
    if (file_ < 0 || failure_ != 0) return;
    if (is_first_) event[0] = ' ';
    is_first_ = false;
    failure_ = put(file_, event);
    if (failure_ != 0) give_up();
  }

  void fail(int failure) {
    const mtf::LockGuard guard(lock_);
    if (failure_ == 0) failure_ = failure;
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
  }

  // In a forked child: file and trace are the parent's.
  void abandon() {
    file_ = -1;
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
  }

 private:
  int put(int file, const std::string& text) {
    if (!is_regular_) return write_all(file, text, -1);
    const int failure = write_all(file, text + kClose, end_);
    if (failure == 0) end_ += static_cast<off_t>(text.size());
    return failure;
  }

  // Leaves the events before the one that could not be written.
  void give_up() {
    mtf::measured.fetch_and(~mtf::kMeasureTrace);
    if (!is_regular_ || ftruncate(file_, end_) != 0) return;
    static_cast<void>(write_all(file_, kClose, end_));
  }

  mtf::Lock lock_;
  int file_ = -1;  // the caller's; negative: no trace
  uint64_t number_ = 0;
  bool is_regular_ = false;
  bool is_first_ = true;
  off_t end_ = 0;  // of the events in a regular file
  int failure_ = 0;
};

Trace* const trace = new Trace;  // never destroyed: plugins' threads may outlive our destructors
const int watching_forks = pthread_atfork(nullptr, nullptr, [] { trace->abandon(); });

}  // namespace

void mtf::trace_call(const CallUnderWay& call, uint64_t begin_ns, uint64_t end_ns,
                     int code) noexcept {
  try {
    trace->add(call, begin_ns, end_ns, code);
  } catch (const std::bad_alloc&) {
    trace->fail(ENOMEM);
  }
}

extern "C" uint64_t mtf_trace_begin(int file, int* failure) {
  uint64_t number = 0;
  *failure = trace->begin(file, &number);
  return number;
}

extern "C" int mtf_trace_end(uint64_t number) { return trace->end(number); }
