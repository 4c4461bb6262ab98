// OpenCL's devices: what the tables of device/plugin.h call.
#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "device/plugin.h"
#include "opencl.h"
#include "opencl_device/stream.h"

namespace opencl {
namespace {

using device::kAlignment;

// -- which OpenCL devices this plugin offers ----------------------------------------------------------

// clGetPlatformInfo and clGetDeviceInfo.
template <class Subject, class What>
std::string text(cl_int (*get)(Subject, What, size_t, void*, size_t*), Subject subject, What what) {
  size_t size = 0;
  if (get(subject, what, 0, nullptr, &size) != CL_SUCCESS) return "";
  std::string found(size, '\0');
  if (get(subject, what, size, found.data(), nullptr) != CL_SUCCESS) return "";
  return found.c_str();  // the size counts the zero at the end
}

std::string platform_text(cl_platform_id platform, cl_platform_info what) {
  return text(clGetPlatformInfo, platform, what);
}

std::string device_text(cl_device_id device, cl_device_info what) {
  return text(clGetDeviceInfo, device, what);
}

// A number of a device; `otherwise` where the driver does not know the question.
template <class Number>
Number device_number(cl_device_id device, cl_device_info what, Number otherwise) {
  Number number = otherwise;
  const cl_int error = clGetDeviceInfo(device, what, sizeof(number), &number, nullptr);
  return error == CL_SUCCESS ? number : otherwise;
}

// All devices belong to one OpenCL platform: within it they share a context, and so addresses and
// events mean the same to each of them.
struct Found {
  cl_platform_id platform = nullptr;
  std::vector<cl_device_id> devices;  // none: there is no OpenCL here that fits
  bool shares_with_host = false;      // every device has memory that the host may use meanwhile
};

constexpr const char* kWishedPlatform = "MTF_OPENCL_PLATFORM";

std::vector<cl_platform_id> all_platforms() {
  cl_uint count = 0;
  const cl_int error = clGetPlatformIDs(0, nullptr, &count);
  if (error == CL_PLATFORM_NOT_FOUND_KHR || count == 0) return {};
  check(error, "clGetPlatformIDs");
  std::vector<cl_platform_id> platforms(count);
  check(clGetPlatformIDs(count, platforms.data(), nullptr), "clGetPlatformIDs");
  return platforms;
}

std::vector<cl_device_id> all_devices(cl_platform_id platform) {
  cl_uint count = 0;
  const cl_int error = clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &count);
  if (error == CL_DEVICE_NOT_FOUND) return {};
  check(error, "clGetDeviceIDs");
  std::vector<cl_device_id> devices(count);
  check(clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices.data(), nullptr),
        "clGetDeviceIDs");
  return devices;
}

bool has(cl_device_id device, cl_device_svm_capabilities kind) {
  return (device_number<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES, 0) & kind) !=
         0;
}

bool fits(cl_device_id device) {
  const auto queues =
      device_number<cl_command_queue_properties>(device, CL_DEVICE_QUEUE_ON_HOST_PROPERTIES, 0);
  return device_number<cl_bool>(device, CL_DEVICE_AVAILABLE, CL_FALSE) == CL_TRUE &&
         has(device, CL_DEVICE_SVM_COARSE_GRAIN_BUFFER) && (queues & CL_QUEUE_PROFILING_ENABLE) != 0;
}

Found devices_of(cl_platform_id platform) {
  Found found{platform, all_devices(platform), false};
  auto& devices = found.devices;
  devices.erase(std::remove_if(devices.begin(), devices.end(),
                               [](cl_device_id device) { return !fits(device); }),
                devices.end());
  found.shares_with_host =
      !devices.empty() && std::all_of(devices.begin(), devices.end(), [](cl_device_id device) {
        return has(device, CL_DEVICE_SVM_FINE_GRAIN_BUFFER);
      });
  return found;
}

Found wished_platform(const std::vector<cl_platform_id>& platforms, const std::string& wish) {
  std::string names;
  for (cl_platform_id platform : platforms) {
    const std::string name = platform_text(platform, CL_PLATFORM_NAME);
    if (name == wish) return devices_of(platform);
    names += (names.empty() ? "'" : ", '") + name + "'";
  }
  throw device::Failed(TF_NOT_FOUND, std::string(kWishedPlatform) + " names '" + wish +
                                 "'; the OpenCL platforms here are: " +
                                 (names.empty() ? "none" : names));
}

// A driver that fails must not hide the others.
Found first_platform(const std::vector<cl_platform_id>& platforms) {
  std::string failures;
  for (cl_platform_id platform : platforms) {
    try {
      Found found = devices_of(platform);
      if (!found.devices.empty()) return found;
    } catch (const device::Failed& failed) {
      failures += std::string(failures.empty() ? "" : "; ") + failed.what();
    }
  }
  if (!failures.empty()) throw device::Failed(TF_UNAVAILABLE, "no OpenCL driver works: " + failures);
  return {};
}

Found look_up() {
  const std::vector<cl_platform_id> platforms = all_platforms();
  const char* wish = std::getenv(kWishedPlatform);
  if (wish != nullptr && *wish != '\0') return wished_platform(platforms, wish);
  return first_platform(platforms);
}

// The platform named by MTF_OPENCL_PLATFORM, else the first one that has a device with shared virtual
// memory and profiling. Looked up once per process. Throws device::Failed when the named platform does not
// exist, or when drivers failed and none fits.
const Found& found_devices() {
  static const Found* const found = new Found(look_up());  // outlives whoever runs at exit
  return *found;
}

Context make_context() {
  const Found& found = found_devices();
  const cl_context_properties properties[] = {
      CL_CONTEXT_PLATFORM, reinterpret_cast<cl_context_properties>(found.platform), 0};
  cl_int error = CL_SUCCESS;
  Context context(clCreateContext(properties, static_cast<cl_uint>(found.devices.size()),
                                  found.devices.data(), nullptr, nullptr, &error));
  check(error, "clCreateContext");
  return context;
}

// The context of all devices found; lives as long as anybody holds it. [any thread]
std::shared_ptr<const Context> shared_context() {
  static auto* const mutex = new std::mutex();
  static auto* const current = new std::weak_ptr<const Context>();
  const std::lock_guard lock(*mutex);
  std::shared_ptr<const Context> context = current->lock();
  if (context == nullptr) {
    context = std::make_shared<const Context>(make_context());
    *current = context;
  }
  return context;
}

// -- memory -------------------------------------------------------------------------------------------

// OpenCL promises an alignment of no more than 128, so each block has kAlignment bytes to spare: this is the
// first aligned address of such a block.
void* aligned_in(void* block) {
  const auto address = reinterpret_cast<uintptr_t>(block);
  return reinterpret_cast<void*>((address + kAlignment - 1) / kAlignment * kAlignment);
}

// Memory that the device and the host know under one address. [any thread]
class SharedMemory {
 public:
  // `flags` as clSVMAlloc takes them; no more than `limit` bytes are in use at once.
  SharedMemory(std::shared_ptr<const Context> context, cl_svm_mem_flags flags, uint64_t limit)
      : context_(std::move(context)), flags_(flags), limit_(limit) {}
  SharedMemory(const SharedMemory&) = delete;
  ~SharedMemory() {  // frees what is left
    for (const auto& [memory, block] : blocks_) clSVMFree(context_->get(), block.start);
  }

  // NULL when there is none left. 0 bytes give an address too.
  void* allocate(uint64_t bytes) {
    const std::lock_guard lock(mutex_);
    if (bytes > limit_ - static_cast<uint64_t>(counts_.bytes_in_use)) return nullptr;
    void* start = clSVMAlloc(context_->get(), flags_, static_cast<size_t>(bytes) + kAlignment, 0);
    if (start == nullptr) return nullptr;
    void* memory = aligned_in(start);
    try {
      blocks_[memory] = {start, static_cast<int64_t>(bytes)};
    } catch (const std::bad_alloc&) {
      clSVMFree(context_->get(), start);
      return nullptr;
    }
    counts_.add(static_cast<int64_t>(bytes));
    return memory;
  }

  // Hosts pass the address alone, so the sizes are kept here. An address that is not of this memory is
  // left alone.
  void deallocate(void* memory) {
    const std::lock_guard lock(mutex_);
    const auto found = blocks_.find(memory);
    if (found == blocks_.end()) return;
    clSVMFree(context_->get(), found->second.start);
    counts_.bytes_in_use -= found->second.bytes;
    blocks_.erase(found);
  }

  device::MemoryCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }
  uint64_t limit() const { return limit_; }

 private:
  struct Block {
    void* start;  // as clSVMAlloc gave it
    int64_t bytes;
  };

  const std::shared_ptr<const Context> context_;
  const cl_svm_mem_flags flags_;
  const uint64_t limit_;
  mutable std::mutex mutex_;
  std::map<void*, Block> blocks_;
  device::MemoryCounts counts_;
};

// Host memory that the driver can copy from and to without a detour: buffers of kind
// CL_MEM_ALLOC_HOST_PTR that stay mapped as long as they live. All but deallocate throw Failed. [any thread]
class PinnedMemory {
 public:
  PinnedMemory(std::shared_ptr<const Context> context, cl_device_id device)
      : context_(std::move(context)), queue_(make_queue(*context_, device)) {}
  PinnedMemory(const PinnedMemory&) = delete;
  ~PinnedMemory() {  // frees what is left
    for (const auto& [memory, mapped] : mapped_) unmap(mapped);
  }

  // Aligned as device memory is. 0 bytes give an address too.
  void* allocate(uint64_t bytes) {
    if (bytes > std::numeric_limits<size_t>::max() - kAlignment) {
      check(CL_OUT_OF_HOST_MEMORY, "clCreateBuffer");
    }
    Mapped mapped = map(static_cast<size_t>(bytes) + kAlignment);
    void* memory = aligned_in(mapped.start);
    const std::lock_guard lock(mutex_);
    mapped_[memory] = std::move(mapped);
    return memory;
  }

  // An address that is not of this memory is left alone.
  void deallocate(void* memory) {
    Mapped mapped;
    {
      const std::lock_guard lock(mutex_);
      const auto found = mapped_.find(memory);
      if (found == mapped_.end()) return;
      mapped = std::move(found->second);
      mapped_.erase(found);
    }
    unmap(mapped);
  }

 private:
  struct Mapped {
    Buffer buffer;
    void* start;  // as OpenCL mapped it
  };

  Mapped map(size_t bytes) const {
    cl_int error = CL_SUCCESS;
    Buffer buffer(clCreateBuffer(context_->get(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes,
                                 nullptr, &error));
    check(error, "clCreateBuffer");
    void* start = clEnqueueMapBuffer(queue_.get(), buffer.get(), CL_TRUE, CL_MAP_READ | CL_MAP_WRITE,
                                     0, bytes, 0, nullptr, nullptr, &error);
    check(error, "clEnqueueMapBuffer");
    return {std::move(buffer), start};
  }

  // There is nobody left to report a failure to: the address is gone either way.
  void unmap(const Mapped& mapped) const {
    clEnqueueUnmapMemObject(queue_.get(), mapped.buffer.get(), mapped.start, 0, nullptr, nullptr);
    clFinish(queue_.get());
  }

  const std::shared_ptr<const Context> context_;
  const Queue queue_;  // maps and unmaps
  std::mutex mutex_;
  std::map<void*, Mapped> mapped_;
};

// -- streams ------------------------------------------------------------------------------------------

// One command's completion. Empty: there is nothing to wait for.
class Mark : public Handle<cl_event, clRetainEvent, clReleaseEvent> {
 public:
  using Handle::Handle;

  // CL_COMPLETE, a positive number before that, a negative one after a failure.
  cl_int execution() const {
    if (!*this) return CL_COMPLETE;
    cl_int status = CL_COMPLETE;
    opencl::check(
        clGetEventInfo(get(), CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, nullptr),
        "clGetEventInfo");
    return status;
  }
  SE_EventStatus status() const {
    const cl_int status = execution();
    if (status < 0) return SE_EVENT_ERROR;
    return status == CL_COMPLETE ? SE_EVENT_COMPLETE : SE_EVENT_PENDING;
  }
  // Throws device::Failed where the command has failed.
  void check() const { opencl::check(execution(), "the work before the event"); }
  // Waits for the end, be it good or bad.
  void wait() const {
    if (!*this) return;
    const cl_event event = get();
    const cl_int waited = clWaitForEvents(1, &event);
    if (waited != CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST) opencl::check(waited, "clWaitForEvents");
  }
  // When the device had finished the command, by its clock in nanoseconds.
  uint64_t passed_at() const {
    cl_ulong time = 0;
    opencl::check(
        clGetEventProfilingInfo(get(), CL_PROFILING_COMMAND_END, sizeof(time), &time, nullptr),
        "clGetEventProfilingInfo");
    return time;
  }
};

// -- host functions that a stream runs when it gets to them, on a thread of ours: OpenCL's own callbacks
// must be short and may not wait, the host's may --

// Holds up what waits for its event, until it goes. [any thread]
class Gate {
 public:
  explicit Gate(const Context& context) {  // throws device::Failed
    cl_int error = CL_SUCCESS;
    event_ = clCreateUserEvent(context.get(), &error);
    check(error, "clCreateUserEvent");
  }
  Gate(const Gate&) = delete;
  ~Gate() {
    if (event_ == nullptr) return;
    clSetUserEventStatus(event_, CL_COMPLETE);
    clReleaseEvent(event_);
  }

  cl_event event() const { return event_; }

 private:
  cl_event event_ = nullptr;
};

// One call that the host asked for; its end opens the gate for the work behind it.
struct Callback {
  SE_StatusCallbackFn function;
  void* argument;
  std::shared_ptr<device::FirstFailure> failure;  // the stream's, which may be gone by then
  Gate gate;
};

// Runs the callbacks of one stream one after the other, on a thread that the first one starts.
// [any thread]
class Callbacks {
 public:
  ~Callbacks() {  // waits for all that are expected, unless one of them calls
    if (arrivals_ == nullptr) return;
    {
      const std::lock_guard lock(arrivals_->mutex);
      arrivals_->closing = true;
    }
    arrivals_->changed.notify_one();
    if (is_own_thread()) {
      worker_.detach();  // nobody can wait for himself
    } else {
      worker_.join();
    }
  }

  // Runs `callback` when `mark` is reached. Throws device::Failed, and then has opened the gate.
  void run_after(cl_event mark, std::unique_ptr<Callback> callback) {
    start();
    auto arrival = std::make_unique<Arrival>(Arrival{arrivals_, std::move(callback)});
    arrivals_->announce();
    const cl_int error = clSetEventCallback(mark, CL_COMPLETE, arrived, arrival.get());
    if (error == CL_SUCCESS) {
      arrival.release();  // `arrived` owns it, and may have freed it by now
      return;
    }
    arrivals_->add(nullptr);
    check(error, "clSetEventCallback");
  }

  bool is_own_thread() const { return worker_.get_id() == std::this_thread::get_id(); }

 private:
  struct Arrivals {
    std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::unique_ptr<Callback>> ready;
    size_t expected = 0;  // announced and not yet taken
    bool closing = false;

    // Room for one more, so that its arrival cannot fail.
    void announce() {
      const std::lock_guard lock(mutex);
      ready.reserve(expected + 1);
      ++expected;
    }

    void add(std::unique_ptr<Callback> callback) {
      {
        const std::lock_guard lock(mutex);
        if (callback == nullptr) {
          --expected;
        } else {
          ready.push_back(std::move(callback));
        }
      }
      changed.notify_one();
    }

    // The next one, or NULL when none will come any more.
    std::unique_ptr<Callback> take() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return !ready.empty() || (closing && expected == 0); });
      if (ready.empty()) return nullptr;
      std::unique_ptr<Callback> callback = std::move(ready.front());
      ready.erase(ready.begin());
      --expected;
      return callback;
    }
  };

  struct Arrival {
    std::shared_ptr<Arrivals> arrivals;
    std::unique_ptr<Callback> callback;
  };

  // On a thread of the driver, or at once on the caller's. A failure of the work before is the stream's
  // affair: the host relies on its function being run.
  static void CL_CALLBACK arrived(cl_event, cl_int, void* arrival) {
    const std::unique_ptr<Arrival> owned(static_cast<Arrival*>(arrival));
    owned->arrivals->add(std::move(owned->callback));
  }

  void start() {
    const std::lock_guard lock(starting_);
    if (arrivals_ != nullptr) return;
    auto arrivals = std::make_shared<Arrivals>();
    worker_ = std::thread([arrivals] {
      while (const std::unique_ptr<Callback> callback = arrivals->take()) {
        callback->failure->run(callback->function, callback->argument);
      }
    });
    arrivals_ = std::move(arrivals);
  }

  std::mutex starting_;
  std::shared_ptr<Arrivals> arrivals_;  // the thread's too: it may outlive the stream
  std::thread worker_;
};

// An in-order command queue, what became of the commands in it, and the host functions that run between
// them. All that enqueue throw device::Failed. What other libraries know comes first: they have the address
// alone. [any thread]
class Stream : public OpenCLDeviceStream {
 public:
  Stream(std::shared_ptr<const Context> context, cl_device_id device)
      : OpenCLDeviceStream{},
        context_(std::move(context)),
        queue_(make_queue(*context_, device)) {
    static_cast<OpenCLDeviceStream&>(*this) = {OPENCL_DEVICE_STREAM_TAG, context_->get(), device,
                                               queue_.get(), add_foreign};
  }
  Stream(const Stream&) = delete;
  ~Stream() {  // runs what is queued first
    if (callbacks_.is_own_thread()) return;  // it cannot wait for itself: OpenCL ends the queue
    try {
      mark().wait();
    } catch (const std::exception&) {
      clFinish(queue_.get());  // no marker to be had: the plain way
    }
  }

  void copy(void* target, const void* source, uint64_t size) {
    enqueue("clEnqueueSVMMemcpy", [=](cl_command_queue to, cl_event* event) {
      return clEnqueueSVMMemcpy(to, CL_FALSE, target, source, size, 0, nullptr, event);
    });
  }
  // The address and the size must be multiples of the pattern's size: OpenCL checks.
  template <class Pattern>
  void fill(void* target, Pattern pattern, uint64_t size) {
    enqueue("clEnqueueSVMMemFill", [&](cl_command_queue to, cl_event* event) {
      return clEnqueueSVMMemFill(to, target, &pattern, sizeof(pattern), size, 0, nullptr, event);
    });
  }

  // Reached when everything enqueued so far is done.
  Mark mark() {
    const std::lock_guard lock(mutex_);
    Mark mark = add_marker();
    flush();
    return mark;
  }
  Mark timed_mark() { return mark(); }

  // Later commands wait for `mark`; an empty one is none to wait for.
  void wait_for(const Mark& mark) {
    if (mark.execution() == CL_COMPLETE) return;
    const std::lock_guard lock(mutex_);
    add_barrier(mark.get());
    flush();
  }

  // Runs a function of the host when all before is done; later commands wait for its end.
  void call(SE_StatusCallbackFn function, void* argument) {
    std::unique_ptr<Callback> callback(
        new Callback{function, argument, failure_, Gate(*context_)});
    const std::lock_guard lock(mutex_);
    const Mark reached = add_marker();
    add_barrier(callback->gate.event());
    flush();  // before the last step: nothing may fail once the callback is going to run
    callbacks_.run_after(reached.get(), std::move(callback));
  }

  // Throws the first failure of a command or of a callback. It stays until the stream ends; what later
  // commands do after the failure of another one is the driver's choice.
  void check() {
    {
      const std::lock_guard lock(mutex_);
      collect();
    }
    failure_->check();
  }

 private:
  // For a command that others have enqueued in the queue.
  static void add_foreign(SP_Stream stream, cl_event event, TF_Status* status) {
    device::reported(status, [&] {
      Stream& its = *reinterpret_cast<Stream*>(stream);
      opencl::check(clRetainEvent(event), "clRetainEvent");
      Mark mark(event);
      const std::lock_guard lock(its.mutex_);
      its.collect();
      its.running_.push_back(std::move(mark));
      its.flush();
    });
  }

  // Enqueues `command(queue, &event)`, an OpenCL function by the name `function`.
  template <class Command>
  void enqueue(const char* function, Command&& command) {
    const std::lock_guard lock(mutex_);
    add_command(function, command);
    flush();
  }

  // All with the lock held.
  template <class Command>
  Mark add_command(const char* function, Command&& command) {
    collect();
    cl_event event = nullptr;
    opencl::check(command(queue_.get(), &event), function);
    Mark mark(event);
    running_.push_back(mark);
    return mark;
  }
  Mark add_marker() {
    return add_command("clEnqueueMarkerWithWaitList", [](cl_command_queue to, cl_event* event) {
      return clEnqueueMarkerWithWaitList(to, 0, nullptr, event);
    });
  }
  void add_barrier(cl_event awaited) {
    add_command("clEnqueueBarrierWithWaitList", [awaited](cl_command_queue to, cl_event* event) {
      return clEnqueueBarrierWithWaitList(to, 1, &awaited, event);
    });
  }
  void collect() {
    while (!running_.empty()) {
      const cl_int status = running_.front().execution();
      if (status > CL_COMPLETE) return;
      if (status < 0) failure_->set(status_code(status), "work of the stream: " + error_text(status));
      running_.pop_front();
    }
  }
  // Other queues, and pollers, may wait for a command only when it is on its way.
  void flush() { opencl::check(clFlush(queue_.get()), "clFlush"); }

  const std::shared_ptr<const Context> context_;
  const Queue queue_;
  const std::shared_ptr<device::FirstFailure> failure_ = std::make_shared<device::FirstFailure>();
  std::mutex mutex_;
  std::deque<Mark> running_;  // in order; those at the front may be done
  Callbacks callbacks_;
};

// -- the plugin ---------------------------------------------------------------------------------------

bool offers(cl_device_id device, const char* extension) {
  const std::string all = ' ' + device_text(device, CL_DEVICE_EXTENSIONS) + ' ';
  return all.find(std::string(" ") + extension + ' ') != std::string::npos;
}

// "" without the extension that tells.
std::string bus_id(cl_device_id device) {
#ifdef CL_DEVICE_PCI_BUS_INFO_KHR
  cl_device_pci_bus_info_khr at{};
  if (!offers(device, "cl_khr_pci_bus_info") ||
      clGetDeviceInfo(device, CL_DEVICE_PCI_BUS_INFO_KHR, sizeof(at), &at, nullptr) != CL_SUCCESS) {
    return "";
  }
  char text[32];
  std::snprintf(text, sizeof(text), "%04x:%02x:%02x.%x", at.pci_domain, at.pci_bus, at.pci_device,
                at.pci_function);
  return text;
#else
  return "";
#endif
}

cl_ulong memory_of(cl_device_id device) {
  return device_number<cl_ulong>(device, CL_DEVICE_GLOBAL_MEM_SIZE, 0);
}

// Memory that host and device may use at the same time.
cl_ulong unified_memory_of(cl_device_id device) {
  const auto kinds =
      device_number<cl_device_svm_capabilities>(device, CL_DEVICE_SVM_CAPABILITIES, 0);
  return (kinds & CL_DEVICE_SVM_FINE_GRAIN_BUFFER) != 0 ? memory_of(device) : 0;
}

int64_t as_signed(uint64_t bytes) {
  return static_cast<int64_t>(
      std::min(bytes, static_cast<uint64_t>(std::numeric_limits<int64_t>::max())));
}

class Device {
  const std::shared_ptr<const Context> context_ = shared_context();
  const cl_device_id id_;

 public:
  explicit Device(int32_t ordinal)
      : id_(found_devices().devices[static_cast<size_t>(ordinal)]),
        hardware_name(device_text(id_, CL_DEVICE_NAME)),
        vendor(device_text(id_, CL_DEVICE_VENDOR)),
        pci_bus_id(bus_id(id_)),
        memory_(context_, CL_MEM_READ_WRITE, memory_of(id_)),
        unified_(context_, CL_MEM_READ_WRITE | CL_MEM_SVM_FINE_GRAIN_BUFFER, unified_memory_of(id_)),
        pinned_(context_, id_),
        copies_(make_queue(*context_, id_)) {}

  const std::string hardware_name, vendor;
  const std::string pci_bus_id;  // "" where the driver does not tell

  void* allocate(uint64_t bytes) { return memory_.allocate(bytes); }
  void deallocate(void* memory) { memory_.deallocate(memory); }
  void* allocate_host(uint64_t bytes) { return pinned_.allocate(bytes); }
  void deallocate_host(void* memory) { pinned_.deallocate(memory); }
  void* allocate_unified(uint64_t bytes) { return unified_.allocate(bytes); }
  void deallocate_unified(void* memory) { unified_.deallocate(memory); }
  device::MemoryCounts counts() const { return memory_.counts(); }
  int64_t bytes_limit() const { return as_signed(memory_.limit()); }
  // OpenCL tells how much memory a device has, not how much of it others use.
  bool memory_usage(int64_t& free, int64_t& total) const {
    total = bytes_limit();
    free = total - counts().bytes_in_use;
    return true;
  }

  // Returns when it is done. Either end may be host memory.
  void copy(void* target, const void* source, uint64_t size) {
    check(clEnqueueSVMMemcpy(copies_.get(), CL_TRUE, target, source, size, 0, nullptr, nullptr),
          "clEnqueueSVMMemcpy");
  }
  std::unique_ptr<Stream> new_stream() { return std::make_unique<Stream>(context_, id_); }

  // OpenCL tells none: clock and compute units say nothing of the work done per cycle, and a measurement
  // would need a compiler. Negative means "not known".
  int32_t numa_node() const { return -1; }
  int64_t memory_bandwidth() const { return -1; }
  double gflops() const { return -1.0; }

 private:
  SharedMemory memory_;
  SharedMemory unified_;  // gives nothing where the host may not touch what the device works on
  PinnedMemory pinned_;
  const Queue copies_;
};

// Drivers that cannot be asked have no memory to share; device_count tells why.
bool host_shares_memory() {
  try {
    return found_devices().shares_with_host;
  } catch (const std::exception&) {
    return false;
  }
}

struct Backend {
  using Device = opencl::Device;
  using Stream = opencl::Stream;
  using Mark = opencl::Mark;

  static void describe(SP_Platform& platform) {
    platform.name = MTF_OPENCL_PLATFORM_NAME;
    platform.type = MTF_OPENCL_DEVICE_TYPE;
    platform.supports_unified_memory = host_shares_memory() ? 1 : 0;
    platform.use_bfc_allocator = 1;    // a driver's allocation is slow
    platform.force_memory_growth = 1;  // and on a host's processor it is the host's memory
  }
  static int device_count() { return static_cast<int>(found_devices().devices.size()); }
};

}  // namespace
}  // namespace opencl

extern "C" TF_CAPI_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                             TF_Status* status) {
  device::init_plugin<opencl::Backend>(params, status);
}
