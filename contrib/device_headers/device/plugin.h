// A device plugin from a backend: the tables of modular_tf/device.h, filled by templates.
//
// A backend is a type that names what a plugin has to write itself:
//
//   struct Backend {
//     using Device = ...;  // memory, synchronous copies, facts; made from an ordinal
//     using Stream = ...;  // work in order; made by Device::new_stream
//     using Mark = ...;    // a place in a stream, passed once; empty: there is nothing to wait for
//     static void describe(SP_Platform& platform);  // name, type and habits
//     static int device_count();
//   };
//
// Slots below shows what each of them has to offer. What makes something, copies or waits may throw,
// Failed for a status code of its choice: no exception reaches the host, which is C. What releases
// memory or reports a fact must not. All are used by any thread, several at once.
//
// SP_Stream, SP_Event and SP_Timer are the addresses of a Stream, an Event and a Timer. A stream whose
// base class is a struct in C is the address of that struct, for kernels in other libraries.
#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "modular_tf/device.h"
#include "modular_tf/status.h"

namespace device {

// A failure with the status code that the host shall see.
class Failed : public std::runtime_error {
 public:
  Failed(TF_Code status, const std::string& message) : std::runtime_error(message), code(status) {}
  const TF_Code code;
};

// Runs the body of a slot. `status` is OK unless it throws; threads that cannot be started count as
// memory does.
template <class Body>
void reported(TF_Status* status, Body&& body) noexcept {
  try {
    body();
    TF_SetStatus(status, TF_OK, "");
  } catch (const Failed& failed) {
    TF_SetStatus(status, failed.code, failed.what());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::system_error& error) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, error.what());
  } catch (const std::exception& error) {
    TF_SetStatus(status, TF_INTERNAL, error.what());
  }
}

// The first thing that went wrong on a stream. Shared with callbacks, which may destroy the very stream
// that they run on and report a failure after that. [any thread]
class FirstFailure {
 public:
  void set(TF_Code code, const std::string& message) {
    const std::lock_guard lock(mutex_);
    if (code_ != TF_OK) return;
    code_ = code;
    message_ = message;
  }
  void check() const {
    const std::lock_guard lock(mutex_);
    if (code_ != TF_OK) throw Failed(code_, message_);
  }
  // Runs a function of the host, whose failure this becomes.
  void run(SE_StatusCallbackFn function, void* argument) {
    TF_Status* status = TF_NewStatus();
    function(argument, status);
    if (TF_GetCode(status) != TF_OK) set(TF_GetCode(status), TF_Message(status));
    TF_DeleteStatus(status);
  }

 private:
  mutable std::mutex mutex_;
  TF_Code code_ = TF_OK;
  std::string message_;
};

// Points at the mark that it was last recorded as. Recording it again leaves those alone who wait for the
// earlier mark, and destroying it nobody. [any thread]
template <class Mark>
class Event {
 public:
  void set(Mark mark) {
    const std::lock_guard lock(mutex_);
    mark_ = std::move(mark);
  }
  Mark mark() const {  // empty: never recorded
    const std::lock_guard lock(mutex_);
    return mark_;
  }

 private:
  mutable std::mutex mutex_;
  Mark mark_;
};

// What a device has given out, as SP_AllocatorStats counts it. [one thread at a time]
struct MemoryCounts {
  int64_t allocations = 0;  // ever made
  int64_t bytes_in_use = 0;
  int64_t peak_bytes_in_use = 0;
  int64_t largest_bytes = 0;

  void add(int64_t bytes) {
    ++allocations;
    bytes_in_use += bytes;
    peak_bytes_in_use = std::max(peak_bytes_in_use, bytes_in_use);
    largest_bytes = std::max(largest_bytes, bytes);
  }
};

// What TensorFlow's newer hosts and DLPack ask for.
constexpr size_t kAlignment = 256;

// The functions in the host's tables.
template <class Backend>
struct Slots {
  using Stream = typename Backend::Stream;
  using Mark = typename Backend::Mark;
  using MarkedEvent = Event<Mark>;

  // The time between two marks, by the clock of the device.
  struct Timer {
    MarkedEvent start, stop;
  };

  // What device_handle points at.
  struct OpenDevice {
    explicit OpenDevice(int32_t ordinal) : device(ordinal) {}
    typename Backend::Device device;
    std::mutex mutex;  // of what follows
    std::set<Stream*> streams;
  };

  static OpenDevice& open(const SP_Device* device) {
    return *static_cast<OpenDevice*>(device->device_handle);
  }
  static auto& device_of(const SP_Device* device) { return open(device).device; }
  static Stream& of(SP_Stream stream) { return *reinterpret_cast<Stream*>(stream); }
  static MarkedEvent& of(SP_Event event) { return *reinterpret_cast<MarkedEvent*>(event); }
  static Timer& of(SP_Timer timer) { return *reinterpret_cast<Timer*>(timer); }

  // -- memory. Hosts pass the address alone, so sizes are the device's to keep ----------------------

  // These slots have no status to say why: NULL.
  template <class Body>
  static void* memory_or_null(Body&& body) noexcept {
    try {
      return body();
    } catch (const std::exception&) {
      return nullptr;
    }
  }
  static void allocate(const SP_Device* device, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
    memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
    memory->opaque = memory_or_null([&] { return device_of(device).allocate(size); });
    memory->size = memory->opaque == nullptr ? 0 : size;
    memory->payload = 0;
  }
  static void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
    device_of(device).deallocate(memory->opaque);
    memory->opaque = nullptr;
    memory->size = 0;
  }
  static void* host_memory_allocate(const SP_Device* device, uint64_t size) {
    return memory_or_null([&] { return device_of(device).allocate_host(size); });
  }
  static void host_memory_deallocate(const SP_Device* device, void* memory) {
    device_of(device).deallocate_host(memory);
  }
  static void* unified_memory_allocate(const SP_Device* device, uint64_t size) {
    return memory_or_null([&] { return device_of(device).allocate_unified(size); });
  }
  static void unified_memory_deallocate(const SP_Device* device, void* memory) {
    device_of(device).deallocate_unified(memory);
  }
  // Nothing is reserved ahead; how the memory lies is not known.
  static TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats* stats) {
    const MemoryCounts counts = device_of(device).counts();
    const int64_t limit = device_of(device).bytes_limit();
    *stats = SP_AllocatorStats{};
    stats->struct_size = SP_ALLOCATORSTATS_STRUCT_SIZE;
    stats->num_allocs = counts.allocations;
    stats->bytes_in_use = counts.bytes_in_use;
    stats->peak_bytes_in_use = counts.peak_bytes_in_use;
    stats->largest_alloc_size = counts.largest_bytes;
    stats->has_bytes_limit = limit >= 0;
    stats->bytes_limit = limit >= 0 ? limit : 0;
    return 1;
  }
  static TF_Bool device_memory_usage(const SP_Device* device, int64_t* free, int64_t* total) {
    return device_of(device).memory_usage(*free, *total) ? 1 : 0;
  }

  // -- streams --------------------------------------------------------------------------------------

  static void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
    reported(status, [&] {
      std::unique_ptr<Stream> made = open(device).device.new_stream();
      const std::lock_guard lock(open(device).mutex);
      open(device).streams.insert(made.get());
      *stream = reinterpret_cast<SP_Stream>(made.release());
    });
  }
  static void destroy_stream(const SP_Device* device, SP_Stream stream) {
    if (stream == nullptr) return;
    {
      const std::lock_guard lock(open(device).mutex);
      open(device).streams.erase(&of(stream));
    }
    delete &of(stream);
  }
  static void create_stream_dependency(const SP_Device*, SP_Stream dependent, SP_Stream other,
                                       TF_Status* status) {
    reported(status, [&] { of(dependent).wait_for(of(other).mark()); });
  }
  static void get_stream_status(const SP_Device*, SP_Stream stream, TF_Status* status) {
    reported(status, [&] { of(stream).check(); });
  }
  static void block_host_until_done(const SP_Device*, SP_Stream stream, TF_Status* status) {
    reported(status, [&] {
      of(stream).mark().wait();
      of(stream).check();
    });
  }
  // What became of the work, the streams tell.
  static void synchronize_all_activity(const SP_Device* device, TF_Status* status) {
    reported(status, [&] {
      std::vector<Mark> marks;
      {
        const std::lock_guard lock(open(device).mutex);
        for (Stream* stream : open(device).streams) marks.push_back(stream->mark());
      }
      for (const Mark& mark : marks) mark.wait();
    });
  }
  // Not 0: enqueued. TF_OK would be 0, which the host reads as "no".
  static TF_Bool host_callback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn function,
                               void* argument) {
    try {
      of(stream).call(function, argument);
      return 1;
    } catch (const std::exception&) {
      return 0;
    }
  }

  // -- events and timers ----------------------------------------------------------------------------

  static void create_event(const SP_Device*, SP_Event* event, TF_Status* status) {
    reported(status, [&] { *event = reinterpret_cast<SP_Event>(new MarkedEvent()); });
  }
  static void destroy_event(const SP_Device*, SP_Event event) {
    if (event != nullptr) delete &of(event);
  }
  // An event that was never recorded has nothing outstanding.
  static SE_EventStatus get_event_status(const SP_Device*, SP_Event event) {
    try {
      return of(event).mark().status();
    } catch (const std::exception&) {
      return SE_EVENT_UNKNOWN;
    }
  }
  static void record_event(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status* status) {
    reported(status, [&] { of(event).set(of(stream).mark()); });
  }
  static void wait_for_event(const SP_Device* const, SP_Stream stream, SP_Event event,
                             TF_Status* const status) {
    reported(status, [&] { of(stream).wait_for(of(event).mark()); });
  }
  static void block_host_for_event(const SP_Device*, SP_Event event, TF_Status* status) {
    reported(status, [&] {
      const Mark mark = of(event).mark();
      mark.wait();
      mark.check();
    });
  }
  static void create_timer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
    reported(status, [&] { *timer = reinterpret_cast<SP_Timer>(new Timer()); });
  }
  static void destroy_timer(const SP_Device*, SP_Timer timer) {
    if (timer != nullptr) delete &of(timer);
  }
  static void start_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
    reported(status, [&] { of(timer).start.set(of(stream).timed_mark()); });
  }
  static void stop_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
    reported(status, [&] { of(timer).stop.set(of(stream).timed_mark()); });
  }
  // Waits until the streams have passed both ends; 0 when one was never set, or failed.
  static uint64_t nanoseconds(SP_Timer timer) {
    const Mark start = of(timer).start.mark(), stop = of(timer).stop.mark();
    if (!start || !stop) return 0;
    try {
      start.wait();
      stop.wait();
      const uint64_t from = start.passed_at(), to = stop.passed_at();
      return to > from ? to - from : 0;
    } catch (const std::exception&) {
      return 0;
    }
  }

  // -- copies and fills. Of 0 bytes there is nothing to do, and addresses may be NULL ------------------

  static void copy(SP_Stream stream, void* target, const void* source, uint64_t size, TF_Status* status) {
    reported(status, [&] {
      if (size != 0) of(stream).copy(target, source, size);
    });
  }
  static void copy_now(const SP_Device* device, void* target, const void* source, uint64_t size,
                       TF_Status* status) {
    reported(status, [&] {
      if (size != 0) device_of(device).copy(target, source, size);
    });
  }
  template <class Pattern>
  static void fill(SP_Stream stream, void* target, Pattern pattern, uint64_t size, TF_Status* status) {
    reported(status, [&] {
      if (size != 0) of(stream).fill(target, pattern, size);
    });
  }
  static void memcpy_dtoh(const SP_Device*, SP_Stream stream, void* target,
                          const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
    copy(stream, target, source->opaque, size, status);
  }
  static void memcpy_htod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target,
                          const void* source, uint64_t size, TF_Status* status) {
    copy(stream, target->opaque, source, size, status);
  }
  static void memcpy_dtod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target,
                          const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
    copy(stream, target->opaque, source->opaque, size, status);
  }
  static void sync_memcpy_dtoh(const SP_Device* device, void* target,
                               const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
    copy_now(device, target, source->opaque, size, status);
  }
  static void sync_memcpy_htod(const SP_Device* device, SP_DeviceMemoryBase* target,
                               const void* source, uint64_t size, TF_Status* status) {
    copy_now(device, target->opaque, source, size, status);
  }
  static void sync_memcpy_dtod(const SP_Device* device, SP_DeviceMemoryBase* target,
                               const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
    copy_now(device, target->opaque, source->opaque, size, status);
  }
  static void mem_zero(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target, uint64_t size,
                       TF_Status* status) {
    fill(stream, target->opaque, uint8_t{0}, size, status);
  }
  static void memset(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target, uint8_t pattern,
                     uint64_t size, TF_Status* status) {
    fill(stream, target->opaque, pattern, size, status);
  }
  static void memset32(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target,
                       uint32_t pattern, uint64_t size, TF_Status* status) {
    fill(stream, target->opaque, pattern, size, status);
  }

  // -- the platform ---------------------------------------------------------------------------------

  static void get_device_count(const SP_Platform*, int* count, TF_Status* status) {
    *count = 0;
    reported(status, [&] { *count = Backend::device_count(); });
  }
  // NULL says "not known"; an empty name would be one.
  static const char* or_null(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }
  static void create_device(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
    reported(status, [&] {
      const int count = Backend::device_count();
      if (params->ordinal < 0 || params->ordinal >= count) {
        throw Failed(TF_INVALID_ARGUMENT, "there is no device " + std::to_string(params->ordinal) +
                                              ": found " + std::to_string(count));
      }
      auto made = std::make_unique<OpenDevice>(params->ordinal);
      SP_Device& device = *params->device;
      device.struct_size = SP_DEVICE_STRUCT_SIZE;
      device.ordinal = params->ordinal;
      device.hardware_name = or_null(made->device.hardware_name);
      device.device_vendor = or_null(made->device.vendor);
      device.pci_bus_id = or_null(made->device.pci_bus_id);
      device.device_handle = made.release();
    });
  }
  static void destroy_device(const SP_Platform*, SP_Device* device) {
    delete &open(device);
    device->device_handle = nullptr;
  }
  static int32_t get_numa_node(const SP_Device* device) { return device_of(device).numa_node(); }
  static int64_t get_memory_bandwidth(const SP_Device* device) {
    return device_of(device).memory_bandwidth();
  }
  static double get_gflops(const SP_Device* device) { return device_of(device).gflops(); }
  static void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params,
                                TF_Status* status) {
    SP_DeviceFns& fns = *params->device_fns;
    fns.struct_size = SP_DEVICE_FNS_STRUCT_SIZE;
    fns.get_numa_node = get_numa_node;
    fns.get_memory_bandwidth = get_memory_bandwidth;
    fns.get_gflops = get_gflops;
    TF_SetStatus(status, TF_OK, "");
  }
  static void create_stream_executor(const SP_Platform*, SE_CreateStreamExecutorParams* params,
                                     TF_Status* status) {
    SP_StreamExecutor& executor = *params->stream_executor;
    executor.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
    executor.allocate = allocate;
    executor.deallocate = deallocate;
    executor.host_memory_allocate = host_memory_allocate;
    executor.host_memory_deallocate = host_memory_deallocate;
    executor.unified_memory_allocate = unified_memory_allocate;
    executor.unified_memory_deallocate = unified_memory_deallocate;
    executor.get_allocator_stats = get_allocator_stats;
    executor.device_memory_usage = device_memory_usage;
    executor.create_stream = create_stream;
    executor.destroy_stream = destroy_stream;
    executor.create_stream_dependency = create_stream_dependency;
    executor.get_stream_status = get_stream_status;
    executor.block_host_until_done = block_host_until_done;
    executor.synchronize_all_activity = synchronize_all_activity;
    executor.host_callback = host_callback;
    executor.create_event = create_event;
    executor.destroy_event = destroy_event;
    executor.get_event_status = get_event_status;
    executor.record_event = record_event;
    executor.wait_for_event = wait_for_event;
    executor.block_host_for_event = block_host_for_event;
    executor.create_timer = create_timer;
    executor.destroy_timer = destroy_timer;
    executor.start_timer = start_timer;
    executor.stop_timer = stop_timer;
    executor.memcpy_dtoh = memcpy_dtoh;
    executor.memcpy_htod = memcpy_htod;
    executor.memcpy_dtod = memcpy_dtod;
    executor.sync_memcpy_dtoh = sync_memcpy_dtoh;
    executor.sync_memcpy_htod = sync_memcpy_htod;
    executor.sync_memcpy_dtod = sync_memcpy_dtod;
    executor.mem_zero = mem_zero;
    executor.memset = memset;
    executor.memset32 = memset32;
    TF_SetStatus(status, TF_OK, "");
  }
  static void create_timer_fns(const SP_Platform*, SP_TimerFns* fns, TF_Status* status) {
    fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
    fns->nanoseconds = nanoseconds;
    TF_SetStatus(status, TF_OK, "");
  }

  // The tables point at functions and the names are literals: nothing to release.
  static void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) {}
  static void destroy_stream_executor(const SP_Platform*, SP_StreamExecutor*) {}
  static void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) {}
  static void destroy_platform(SP_Platform*) {}
  static void destroy_platform_fns(SP_PlatformFns*) {}

  static void fill_platform_fns(SP_PlatformFns& fns) {
    fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
    fns.get_device_count = get_device_count;
    fns.create_device = create_device;
    fns.destroy_device = destroy_device;
    fns.create_device_fns = create_device_fns;
    fns.destroy_device_fns = destroy_device_fns;
    fns.create_stream_executor = create_stream_executor;
    fns.destroy_stream_executor = destroy_stream_executor;
    fns.create_timer_fns = create_timer_fns;
    fns.destroy_timer_fns = destroy_timer_fns;
  }
};

// The whole of SE_InitPlugin. A host with smaller structs has no room for what is filled in.
template <class Backend>
void init_plugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  const bool has_room = params->struct_size >= SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE &&
                        params->platform->struct_size >= SP_PLATFORM_STRUCT_SIZE &&
                        params->platform_fns->struct_size >= SP_PLATFORM_FNS_STRUCT_SIZE;
  if (params->major_version != SE_MAJOR || !has_room) {
    return TF_SetStatus(status, TF_FAILED_PRECONDITION,
                        "this plugin needs the device interface of TensorFlow 2.9 to 2.21");
  }
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  Backend::describe(*params->platform);
  Slots<Backend>::fill_platform_fns(*params->platform_fns);
  params->struct_size = SE_PLATFORM_REGISTRATION_PARAMS_STRUCT_SIZE;
  params->destroy_platform = Slots<Backend>::destroy_platform;
  params->destroy_platform_fns = Slots<Backend>::destroy_platform_fns;
  TF_SetStatus(status, TF_OK, "");
}

}  // namespace device
