// The host as a device: what the tables of device/plugin.h call.
#include <sched.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "device/plugin.h"
#include "host_device/stream.h"

namespace host {
namespace {

// -- what the operating system says of this machine, and how fast it is. Nothing here is guessed ------

constexpr const char* kBlanks = " \t";

std::string trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

// The value behind "key :" in a file of such lines, or "".
std::string value_of(const char* file, const std::string& key) {
  std::ifstream lines(file);
  std::string line;
  while (std::getline(lines, line)) {
    const size_t colon = line.find(':');
    if (colon != std::string::npos && trimmed(line.substr(0, colon)) == key) {
      return trimmed(line.substr(colon + 1));
    }
  }
  return "";
}

// The number that `text` starts with; false when it starts with none.
template <class Number>
bool leading_number(const std::string& text, Number& number) {
  const char* end = text.data() + text.size();
  return std::from_chars(text.data(), end, number).ec == std::errc();
}

bool meminfo_bytes(const char* key, int64_t& bytes) {
  if (!leading_number(value_of("/proc/meminfo", key), bytes)) return false;
  bytes *= 1024;  // the file counts in kB
  return true;
}

// CPUs that this process may run on; at least 1.
int usable_cpus() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
  return CPU_COUNT(&cpus);
}

// Speeds are measured once per process, when first asked for (a few hundredths of a second each). They are
// estimates of what plain code reaches, not data-sheet numbers.

constexpr int kRuns = 3;
constexpr size_t kBlockBytes = size_t{32} << 20;
constexpr size_t kLanes = 64;  // enough independent sums to keep the pipeline full
constexpr int kRounds = 1 << 18;

// Seconds of the fastest of some runs: the others were disturbed.
template <class Work>
double fastest(Work&& work) {
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
  }
  return best;
}

int64_t measure_bandwidth() {
  const std::unique_ptr<char[]> from(new (std::nothrow) char[kBlockBytes]);
  const std::unique_ptr<char[]> to(new (std::nothrow) char[kBlockBytes]);
  if (from == nullptr || to == nullptr) return -1;
  std::memset(from.get(), 1, kBlockBytes);  // pages that were never written would share one
  std::memset(to.get(), 1, kBlockBytes);
  const double seconds = fastest([&] { std::memcpy(to.get(), from.get(), kBlockBytes); });
  return static_cast<int64_t>(2.0 * static_cast<double>(kBlockBytes) / seconds);
}

// Kept alive by the volatile store: the compiler may not drop the loop.
void multiply_and_add() {
  std::array<float, kLanes> sums{};
  for (int round = 0; round < kRounds; ++round) {
    for (float& sum : sums) sum = sum * 0.999F + 1.0F;
  }
  volatile float sink = *std::max_element(sums.begin(), sums.end());
  static_cast<void>(sink);
}

double measure_gflops() {
  const double operations = 2.0 * static_cast<double>(kLanes) * kRounds;
  return operations / fastest(multiply_and_add) * 1e-9 * usable_cpus();
}

// "model name" of /proc/cpuinfo; where it has none (as on ARM) the machine name of uname.
std::string hardware_name() {
  const std::string model = value_of("/proc/cpuinfo", "model name");
  if (!model.empty()) return model;
  utsname names{};
  return uname(&names) == 0 ? names.machine : "";
}

// "vendor_id" of /proc/cpuinfo, or "" where it has none.
std::string vendor_name() { return value_of("/proc/cpuinfo", "vendor_id"); }

// The NUMA node when there is one only. With several the device spans them all: -1, not known.
int32_t numa_node() {
  std::ifstream file("/sys/devices/system/node/online");
  std::string online;  // "0", or a list such as "0-1"
  std::getline(file, online);
  int32_t node = -1;
  const bool is_one_number = online.find_first_not_of("0123456789") == std::string::npos;
  return is_one_number && leading_number(online, node) ? node : -1;
}

// From /proc/meminfo, else from sysinfo; `free` is what could be had without swapping. False when neither
// answers.
bool memory_usage(int64_t& free, int64_t& total) {
  if (meminfo_bytes("MemAvailable", free) && meminfo_bytes("MemTotal", total)) return true;
  struct sysinfo facts {};
  if (sysinfo(&facts) != 0) return false;
  free = static_cast<int64_t>(facts.freeram) * facts.mem_unit;
  total = static_cast<int64_t>(facts.totalram) * facts.mem_unit;
  return true;
}

// Bytes per second read and written by one thread that copies a 32 MiB block; -1 without memory
// for it. Where the last-level cache is bigger than that, it is the cache's speed.
int64_t memory_bandwidth() {
  static const int64_t bandwidth = measure_bandwidth();
  return bandwidth;
}

// 1e9 multiplications and additions per second: what one thread reaches in a loop of the compiler's
// baseline vector code, times the CPUs that this process may use.
double gflops() {
  static const double speed = measure_gflops();
  return speed;
}

// -- the memory of one device: taken from the heap, and counted ---------------------------------------

using device::kAlignment;

// Fewer and bigger pages: writing to fresh memory is several times as fast.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;
constexpr size_t kLargestSpare = size_t{256} << 20;

bool is_huge(uint64_t bytes) { return bytes >= kHugeFrom; }

// Of at most SIZE_MAX - kHugePage bytes.
size_t rounded_up(uint64_t bytes) {
  const size_t unit = is_huge(bytes) ? kHugePage : kAlignment;
  return (static_cast<size_t>(bytes) + unit - 1) / unit * unit;
}

// Not counted, for std::free. NULL when there is none left. 0 bytes give an address too.
void* allocate_aligned(uint64_t bytes) {
  if (bytes > SIZE_MAX - kHugePage) return nullptr;
  const size_t rounded = rounded_up(bytes);
  if (!is_huge(bytes)) return std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  void* memory = std::aligned_alloc(kHugePage, rounded);
  if (memory != nullptr) madvise(memory, rounded, MADV_HUGEPAGE);  // no harm if it is refused
  return memory;
}

// One large block that was freed, kept for the next allocation of its size. Fresh memory costs as much
// to write for the first time as to copy into: arrays of one size, sent one after the other, pay that
// once. The pages of a kept block are the system's to take back when it needs them. [one thread at a
// time]
class SpareBlock {
 public:
  SpareBlock() = default;
  SpareBlock(const SpareBlock&) = delete;
  SpareBlock& operator=(const SpareBlock&) = delete;
  ~SpareBlock() { drop(); }

  // Returns the kept block if it has this size, else NULL; it is the caller's then.
  void* take(size_t bytes) {
    if (memory_ == nullptr || bytes != bytes_) return nullptr;
    return std::exchange(memory_, nullptr);
  }

  // Keeps a block of whole pages instead of the one that it has kept so far. Returns what is to be
  // freed: that one, or the new one if it is too large to keep; NULL for nothing.
  void* keep(void* memory, size_t bytes) {
    if (bytes > kLargestSpare) return memory;
#ifdef MADV_FREE
    madvise(memory, bytes, MADV_FREE);  // no harm if it is refused
#endif
    bytes_ = bytes;
    return std::exchange(memory_, memory);
  }

  // Frees the kept block; false if there is none.
  bool drop() {
    void* memory = std::exchange(memory_, nullptr);
    std::free(memory);
    return memory != nullptr;
  }

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

// [any thread]
class Memory {
 public:
  // NULL when there is none left. What it holds is not set.
  void* allocate(uint64_t bytes) {
    void* memory = take_spare(bytes);
    if (memory == nullptr) memory = allocate_aligned(bytes);
    if (memory == nullptr && drop_spare()) memory = allocate_aligned(bytes);
    if (memory == nullptr) return nullptr;
    const std::lock_guard lock(mutex_);
    try {
      sizes_.emplace(memory, static_cast<int64_t>(bytes));
    } catch (const std::bad_alloc&) {
      std::free(memory);
      return nullptr;
    }
    counts_.add(static_cast<int64_t>(bytes));
    return memory;
  }

  // Hosts pass the address alone, so the sizes are kept here. An address that is not of this
  // memory is left alone.
  void deallocate(void* memory) {
    {
      const std::lock_guard lock(mutex_);
      const auto found = sizes_.find(memory);
      if (found == sizes_.end()) return;
      const int64_t bytes = found->second;
      counts_.bytes_in_use -= bytes;
      sizes_.erase(found);
      if (is_huge(bytes)) memory = spare_.keep(memory, rounded_up(bytes));
    }
    std::free(memory);
  }

  device::MemoryCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  void* take_spare(uint64_t bytes) {
    if (!is_huge(bytes) || bytes > SIZE_MAX - kHugePage) return nullptr;
    const std::lock_guard lock(mutex_);
    return spare_.take(rounded_up(bytes));
  }
  bool drop_spare() {
    const std::lock_guard lock(mutex_);
    return spare_.drop();
  }

  mutable std::mutex mutex_;
  std::unordered_map<void*, int64_t> sizes_;
  SpareBlock spare_;
  device::MemoryCounts counts_;
};

// -- streams ------------------------------------------------------------------------------------------

// One place in one stream, passed once. Copies are the same place; an empty one is passed. [any thread]
class Mark {
 public:
  static Mark make() {
    Mark made;
    made.state_ = std::make_shared<State>();
    return made;
  }
  explicit operator bool() const { return state_ != nullptr; }

  void pass() const {
    {
      const std::lock_guard lock(state_->mutex);
      state_->is_passed = true;
      state_->time = std::chrono::steady_clock::now();
    }
    state_->changed.notify_all();
  }
  bool is_passed() const {
    if (state_ == nullptr) return true;
    const std::lock_guard lock(state_->mutex);
    return state_->is_passed;
  }
  void wait() const {
    if (state_ == nullptr) return;
    std::unique_lock lock(state_->mutex);
    state_->changed.wait(lock, [this] { return state_->is_passed; });
  }
  void check() const {}  // what tasks do cannot fail
  SE_EventStatus status() const { return is_passed() ? SE_EVENT_COMPLETE : SE_EVENT_PENDING; }
  uint64_t passed_at() const {  // in nanoseconds; of one that is passed
    const std::lock_guard lock(state_->mutex);
    return static_cast<uint64_t>(std::chrono::nanoseconds(state_->time.time_since_epoch()).count());
  }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_passed = false;
    std::chrono::steady_clock::time_point time;
  };
  std::shared_ptr<State> state_;
};

// The tasks of a stream, and its thread's way to them.
struct Queue {
  std::mutex mutex;
  std::condition_variable filled;
  std::vector<std::function<void()>> tasks;
  bool working = false;  // on tasks that were taken
  bool closing = false;

  // The next tasks in order, or none when the stream ends.
  std::vector<std::function<void()>> take_all() {
    std::unique_lock lock(mutex);
    working = false;
    filled.wait(lock, [this] { return closing || !tasks.empty(); });
    working = true;
    return std::exchange(tasks, {});
  }

  void work() {
    for (;;) {
      std::vector<std::function<void()>> batch = take_all();
      if (batch.empty()) return;
      for (auto& task : batch) {
        task();
        task = nullptr;  // what it holds is released in order too
      }
    }
  }
};

// A queue of tasks and one thread that runs them in order. Waking the thread takes longer than a small
// copy, so what is short is done by whoever brings it to a stream without work. Tasks must not throw. What
// other libraries know comes first: they have the address alone. [any thread]
class Stream : public HostDeviceStream {
 public:
  // Throws std::system_error when no thread can be had.
  Stream()
      : HostDeviceStream{HOST_DEVICE_STREAM_TAG, wait_for_stream},
        worker_([queue = queue_] { queue->work(); }) {}
  Stream(const Stream&) = delete;
  ~Stream() {  // runs what is queued first
    {
      const std::lock_guard lock(queue_->mutex);
      queue_->closing = true;
    }
    queue_->filled.notify_one();
    if (worker_.get_id() == std::this_thread::get_id()) {
      worker_.detach();  // nobody can wait for himself
    } else {
      worker_.join();
    }
  }

  void enqueue(std::function<void()> task) {
    {
      const std::lock_guard lock(queue_->mutex);
      queue_->tasks.push_back(std::move(task));
    }
    queue_->filled.notify_one();
  }

  // Passed when everything enqueued so far is done; empty when that is so already.
  Mark mark() {
    if (lock_if_idle().owns_lock()) return {};
    const Mark mark = Mark::make();
    enqueue([mark] { mark.pass(); });
    return mark;
  }
  // Never empty: it has a time.
  Mark timed_mark() {
    const Mark mark = Mark::make();
    enqueue_short([mark] { mark.pass(); });
    return mark;
  }
  // Later tasks wait for `mark`.
  void wait_for(const Mark& mark) {
    if (!mark.is_passed()) enqueue([mark] { mark.wait(); });
  }

  // Copies within one allocation may overlap.
  void copy(void* target, const void* source, uint64_t size) {
    write(size, [=] { std::memmove(target, source, size); });
  }
  void fill(void* target, uint8_t pattern, uint64_t size) {
    write(size, [=] { std::memset(target, pattern, size); });
  }
  // The address need not be a multiple of four.
  void fill(void* target, uint32_t pattern, uint64_t size) {
    if (size % sizeof(pattern) != 0) {
      throw device::Failed(TF_INVALID_ARGUMENT, "memset32: size is no multiple of 4");
    }
    write(size, [=] {
      for (uint64_t at = 0; at < size; at += sizeof(pattern)) {
        std::memcpy(static_cast<char*>(target) + at, &pattern, sizeof(pattern));
      }
    });
  }

  // Runs a function of the host when all before is done. A failure stays until the stream ends; later
  // tasks run all the same.
  void call(SE_StatusCallbackFn function, void* argument) {
    enqueue([failure = failure_, function, argument] { failure->run(function, argument); });
  }
  void check() const { failure_->check(); }

 private:
  static void wait_for_stream(SP_Stream stream, TF_Status* status) {
    device::reported(status, [&] { reinterpret_cast<Stream*>(stream)->mark().wait(); });
  }

  std::unique_lock<std::mutex> lock_if_idle() {
    std::unique_lock lock(queue_->mutex);
    if (!queue_->tasks.empty() || queue_->working) lock.unlock();
    return lock;
  }
  // For a task that takes microseconds and waits for nothing: done on return if the stream is idle.
  // Nothing else starts on the stream meanwhile.
  template <class Task>
  void enqueue_short(Task task) {
    const std::unique_lock<std::mutex> idle = lock_if_idle();
    if (!idle.owns_lock()) return enqueue(std::move(task));
    task();
  }
  // `size`: of what the task writes.
  template <class Task>
  void write(uint64_t size, Task task) {
    constexpr uint64_t kShortBytes = uint64_t{64} << 10;  // takes less than waking a thread
    size > kShortBytes ? enqueue(std::move(task)) : enqueue_short(std::move(task));
  }

  const std::shared_ptr<device::FirstFailure> failure_ = std::make_shared<device::FirstFailure>();
  const std::shared_ptr<Queue> queue_ = std::make_shared<Queue>();  // the thread's too: a task may
                                                                    // destroy the stream
  std::thread worker_;
};

// -- the plugin ---------------------------------------------------------------------------------------

constexpr int kMostDevices = 1024;  // all are the same machine: more is surely a slip

class Device {
 public:
  explicit Device(int32_t) {}

  const std::string hardware_name = host::hardware_name();
  const std::string vendor = vendor_name();
  const std::string pci_bus_id;  // the host sits on no bus

  void* allocate(uint64_t bytes) { return memory_.allocate(bytes); }
  void deallocate(void* memory) { memory_.deallocate(memory); }
  // Host memory and unified memory are the same heap; they do not count as the device's.
  void* allocate_host(uint64_t bytes) { return allocate_aligned(bytes); }
  void deallocate_host(void* memory) { std::free(memory); }
  void* allocate_unified(uint64_t bytes) { return allocate_aligned(bytes); }
  void deallocate_unified(void* memory) { std::free(memory); }
  device::MemoryCounts counts() const { return memory_.counts(); }
  int64_t bytes_limit() const { return -1; }  // none of ours
  bool memory_usage(int64_t& free, int64_t& total) const { return host::memory_usage(free, total); }

  void copy(void* target, const void* source, uint64_t size) { std::memmove(target, source, size); }
  std::unique_ptr<Stream> new_stream() { return std::make_unique<Stream>(); }

  int32_t numa_node() const { return host::numa_node(); }
  int64_t memory_bandwidth() const { return host::memory_bandwidth(); }
  double gflops() const { return host::gflops(); }

 private:
  Memory memory_;
};

struct Backend {
  using Device = host::Device;
  using Stream = host::Stream;
  using Mark = host::Mark;

  static void describe(SP_Platform& platform) {
    platform.name = MTF_HOST_DEVICE_PLATFORM;
    platform.type = MTF_HOST_DEVICE_TYPE;
    platform.supports_unified_memory = 1;  // there is no other memory
    platform.use_bfc_allocator = 0;        // the heap is quick enough
    platform.force_memory_growth = 1;      // a host that pools all the same must not take it all
  }

  // What the environment asks for, or 1.
  static int device_count() {
    const char* text = std::getenv("MTF_HOST_DEVICE_COUNT");
    if (text == nullptr || *text == '\0') return 1;
    int count = 0;
    const std::string_view digits(text);
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), count);
    const bool is_whole = parsed.ec == std::errc() && parsed.ptr == digits.data() + digits.size();
    if (is_whole && count >= 0 && count <= kMostDevices) return count;
    throw device::Failed(TF_INVALID_ARGUMENT, "MTF_HOST_DEVICE_COUNT must be a number from 0 to 1024");
  }
};

}  // namespace
}  // namespace host

extern "C" TF_CAPI_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                             TF_Status* status) {
  device::init_plugin<host::Backend>(params, status);
}
