// A device plugin of type RECORDING, two devices, whose work is done at once and whose every call is
// logged: the slot, then its stream, event, timer and size ("memcpy_htod s2 16"). A test can make
// each slot fail, throw or say nothing, and choose how host callbacks come.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>

#include "modular_tf/device.h"
#include "slots.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

struct SP_Stream_st {
  int number;
};
struct SP_Event_st {
  int number;
};
struct SP_Timer_st {
  int number;
};

namespace {

enum Callbacks { kAtOnce, kOnThread, kRefused, kDropped, kRefusedAndCalled, kTwice };

struct Recording {
  std::string log;
  std::string prefix;                   // of every entry
  std::map<std::string, int> failures;  // slot -> code; -1 throws; -2 leaves all outputs alone
  std::set<std::string> absent;         // slots that are NULL
  bool null_handles = false;
  int event_status = SE_EVENT_COMPLETE;
  int callbacks = kAtOnce;
  bool without_timer_fns = false;
  bool use_bfc_allocator = false, force_memory_growth = false;
  int64_t free_bytes = 600, total_bytes = 1000;
  int streams = 0, events = 0, timers = 0;
  int64_t allocated = 0;
};

std::mutex mutex;
Recording recording;
std::string* journal = &recording.log;  // perhaps another plugin's, to see who was called first
SE_StatusCallbackFn late_callback = nullptr;
void* late_argument = nullptr;
std::thread* callback_thread = nullptr;

std::string of(const char* kind, int number) { return " " + (kind + std::to_string(number)); }
std::string of(SP_Stream stream) { return of("s", stream == nullptr ? 0 : stream->number); }
std::string of(SP_Event event) { return of("e", event == nullptr ? 0 : event->number); }
std::string of(SP_Timer timer) { return of("t", timer == nullptr ? 0 : timer->number); }
std::string of(uint64_t size) { return " " + std::to_string(size); }

// Whether the slot is to do its work; fails or throws where a test has told it to.
bool may_work(const char* slot, TF_Status* status) {
  const auto failure = recording.failures.find(slot);
  if (failure == recording.failures.end()) return true;
  if (failure->second == -1) throw std::runtime_error("thrown by " + failure->first);
  if (failure->second > 0 && status != nullptr) {
    TF_SetStatus(status, static_cast<TF_Code>(failure->second), "told to fail");
  }
  return false;
}

// Logs a call; true when the slot is to do its work.
template <class... Parts>
bool called(const char* slot, TF_Status* status, Parts... parts) {
  const std::lock_guard<std::mutex> lock(mutex);
  std::string& log = *journal;
  if (!log.empty()) log += '\n';
  log += recording.prefix + slot + (std::string() + ... + of(parts));
  return may_work(slot, status);
}

void allocate(const SP_Device*, uint64_t size, int64_t space, SP_DeviceMemoryBase* memory) {
  if (!called("allocate", nullptr, size, static_cast<uint64_t>(space))) return;
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = std::malloc(size);
  memory->size = size;
  memory->payload = 77;
  ++recording.allocated;
}
void deallocate(const SP_Device*, SP_DeviceMemoryBase* memory) {
  if (!called("deallocate", nullptr, memory->size, memory->payload)) return;
  std::free(memory->opaque);
  --recording.allocated;
}
void* host_memory_allocate(const SP_Device*, uint64_t size) {
  if (!called("host_memory_allocate", nullptr, size)) return nullptr;
  ++recording.allocated;
  return std::malloc(size);
}
void host_memory_deallocate(const SP_Device*, void* memory) {
  called("host_memory_deallocate", nullptr);
  std::free(memory);
  --recording.allocated;
}
void* unified_memory_allocate(const SP_Device*, uint64_t size) {
  if (!called("unified_memory_allocate", nullptr, size)) return nullptr;
  ++recording.allocated;
  return std::malloc(size);
}
void unified_memory_deallocate(const SP_Device*, void* memory) {
  called("unified_memory_deallocate", nullptr);
  std::free(memory);
  --recording.allocated;
}
TF_Bool get_allocator_stats(const SP_Device*, SP_AllocatorStats* stats) {
  if (!called("get_allocator_stats", nullptr)) return 0;
  stats->num_allocs = 5;
  stats->has_bytes_limit = 1;
  stats->bytes_limit = 1000;
  return 1;
}
TF_Bool device_memory_usage(const SP_Device*, int64_t* free, int64_t* total) {
  if (!called("device_memory_usage", nullptr)) return 0;
  *free = recording.free_bytes;
  *total = recording.total_bytes;
  return 1;
}

template <class Handle>
Handle make(int* counter) {
  return recording.null_handles ? nullptr : new std::remove_pointer_t<Handle>{++*counter};
}

void create_stream(const SP_Device*, SP_Stream* stream, TF_Status* status) {
  if (called("create_stream", status)) *stream = make<SP_Stream>(&recording.streams);
}
void destroy_stream(const SP_Device*, SP_Stream stream) {
  if (called("destroy_stream", nullptr, stream)) delete stream;
}
void create_stream_dependency(const SP_Device*, SP_Stream dependent, SP_Stream other,
                              TF_Status* status) {
  called("create_stream_dependency", status, dependent, other);
}
void get_stream_status(const SP_Device*, SP_Stream stream, TF_Status* status) {
  called("get_stream_status", status, stream);
}
void create_event(const SP_Device*, SP_Event* event, TF_Status* status) {
  if (called("create_event", status)) *event = make<SP_Event>(&recording.events);
}
void destroy_event(const SP_Device*, SP_Event event) {
  if (called("destroy_event", nullptr, event)) delete event;
}
SE_EventStatus get_event_status(const SP_Device*, SP_Event event) {
  called("get_event_status", nullptr, event);
  return static_cast<SE_EventStatus>(recording.event_status);
}
void record_event(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status* status) {
  called("record_event", status, stream, event);
}
void wait_for_event(const SP_Device* const, SP_Stream stream, SP_Event event,
                    TF_Status* const status) {
  called("wait_for_event", status, stream, event);
}
void create_timer(const SP_Device*, SP_Timer* timer, TF_Status* status) {
  if (called("create_timer", status)) *timer = make<SP_Timer>(&recording.timers);
}
void destroy_timer(const SP_Device*, SP_Timer timer) {
  if (called("destroy_timer", nullptr, timer)) delete timer;
}
void start_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  called("start_timer", status, stream, timer);
}
void stop_timer(const SP_Device*, SP_Stream stream, SP_Timer timer, TF_Status* status) {
  called("stop_timer", status, stream, timer);
}
void memcpy_dtoh(const SP_Device*, SP_Stream stream, void* target, const SP_DeviceMemoryBase* source,
                 uint64_t size, TF_Status* status) {
  if (called("memcpy_dtoh", status, stream, size)) std::memcpy(target, source->opaque, size);
}
void memcpy_htod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target,
                 const void* source, uint64_t size, TF_Status* status) {
  if (called("memcpy_htod", status, stream, size)) std::memcpy(target->opaque, source, size);
}
void memcpy_dtod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target,
                 const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  if (called("memcpy_dtod", status, stream, size)) std::memcpy(target->opaque, source->opaque, size);
}
void sync_memcpy_dtoh(const SP_Device*, void* target, const SP_DeviceMemoryBase* source,
                      uint64_t size, TF_Status* status) {
  if (called("sync_memcpy_dtoh", status, size)) std::memcpy(target, source->opaque, size);
}
void sync_memcpy_htod(const SP_Device*, SP_DeviceMemoryBase* target, const void* source,
                      uint64_t size, TF_Status* status) {
  if (called("sync_memcpy_htod", status, size)) std::memcpy(target->opaque, source, size);
}
void sync_memcpy_dtod(const SP_Device*, SP_DeviceMemoryBase* target,
                      const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  if (called("sync_memcpy_dtod", status, size)) std::memcpy(target->opaque, source->opaque, size);
}
void block_host_for_event(const SP_Device*, SP_Event event, TF_Status* status) {
  called("block_host_for_event", status, event);
}
void block_host_until_done(const SP_Device*, SP_Stream stream, TF_Status* status) {
  called("block_host_until_done", status, stream);
}
void synchronize_all_activity(const SP_Device*, TF_Status* status) {
  called("synchronize_all_activity", status);
}
void mem_zero(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target, uint64_t size,
              TF_Status* status) {
  if (called("mem_zero", status, stream, size)) std::memset(target->opaque, 0, size);
}
void fill(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target, uint8_t pattern,
          uint64_t size, TF_Status* status) {
  if (called("memset", status, stream, size)) std::memset(target->opaque, pattern, size);
}
void fill32(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target, uint32_t pattern,
            uint64_t size, TF_Status* status) {
  if (!called("memset32", status, stream, size)) return;
  for (uint64_t at = 0; at < size; at += 4) {
    std::memcpy(static_cast<char*>(target->opaque) + at, &pattern, 4);
  }
}

void call(SE_StatusCallbackFn function, void* argument) {
  TF_Status* status = TF_NewStatus();
  function(argument, status);
  called("callback", nullptr, static_cast<uint64_t>(TF_GetCode(status)));
  TF_DeleteStatus(status);
}

TF_Bool host_callback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn function,
                      void* argument) {
  if (!called("host_callback", nullptr, stream)) return 0;
  switch (recording.callbacks) {
    case kRefused: return 0;
    case kDropped: return 1;
    case kOnThread:
      callback_thread = new std::thread(call, function, argument);
      return 1;
    case kRefusedAndCalled:
      late_callback = function;
      late_argument = argument;
      return 0;
    case kTwice: call(function, argument); [[fallthrough]];
    default: call(function, argument); return 1;
  }
}

uint64_t nanoseconds(SP_Timer timer) {
  called("nanoseconds", nullptr, timer);
  return 1234;
}

void get_device_count(const SP_Platform*, int* count, TF_Status* status) {
  if (may_work("get_device_count", status)) *count = 2;
}
void create_device(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status* status) {
  if (!called("create_device", status)) return;
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
}
void destroy_device(const SP_Platform*, SP_Device*) { called("destroy_device", nullptr); }
int32_t get_numa_node(const SP_Device*) { return may_work("get_numa_node", nullptr) ? 1 : -1; }
int64_t get_memory_bandwidth(const SP_Device*) {
  return may_work("get_memory_bandwidth", nullptr) ? 2 : -1;
}
double get_gflops(const SP_Device*) { return may_work("get_gflops", nullptr) ? 3 : -1; }
void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  if (!may_work("create_device_fns", status)) return;
  *params->device_fns = {SP_DEVICE_FNS_STRUCT_SIZE, nullptr, get_numa_node, get_memory_bandwidth,
                         get_gflops};
}
void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) {
  called("destroy_device_fns", nullptr);
}

template <class Slot>
void put(Slot& slot, Slot function, const char* name) {
  slot = recording.absent.count(name) != 0 ? nullptr : function;
}

void create_stream_executor(const SP_Platform*, SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  if (!may_work("create_stream_executor", status)) return;
  SP_StreamExecutor& table = *params->stream_executor;
  table.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
#define PUT(slot) put(table.slot, slot, #slot);
  EXECUTOR_SLOTS(PUT)
  put(table.memset, fill, "memset");
  put(table.memset32, fill32, "memset32");
}
void destroy_stream_executor(const SP_Platform*, SP_StreamExecutor*) {
  called("destroy_stream_executor", nullptr);
}
void create_timer_fns(const SP_Platform*, SP_TimerFns* fns, TF_Status* status) {
  if (!called("create_timer_fns", status)) return;
  fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  fns->nanoseconds = nanoseconds;
}
void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) { called("destroy_timer_fns", nullptr); }
void destroy_platform(SP_Platform*) { called("destroy_platform", nullptr); }
void destroy_platform_fns(SP_PlatformFns*) { called("destroy_platform_fns", nullptr); }

}  // namespace

EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
  if (!may_work("SE_InitPlugin", status)) return;
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "RECORDING_PLATFORM";
  params->platform->type = "RECORDING";
  params->platform->use_bfc_allocator = recording.use_bfc_allocator;
  params->platform->force_memory_growth = recording.force_memory_growth;
  SP_PlatformFns& fns = *params->platform_fns;
  fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
#define PUT_PLATFORM(slot) fns.slot = slot;
  PLATFORM_SLOTS(PUT_PLATFORM)
  if (!recording.without_timer_fns) {
    fns.create_timer_fns = create_timer_fns;
    fns.destroy_timer_fns = destroy_timer_fns;
  }
  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
}

EXPORT void record_reset() {
  recording = {};
  journal = &recording.log;
}
EXPORT void* record_journal() { return &recording.log; }
EXPORT void record_into(void* log, const char* prefix) {
  journal = static_cast<std::string*>(log);
  recording.prefix = prefix;
}
EXPORT void record_clear() { recording.log.clear(); }
EXPORT const char* record_log() {
  static std::string copy;
  const std::lock_guard<std::mutex> lock(mutex);
  copy = recording.log;
  return copy.c_str();
}
EXPORT void record_fail(const char* slot, int code) { recording.failures[slot] = code; }
EXPORT void record_heal() { recording.failures.clear(); }
EXPORT void record_leave_out(const char* slot) { recording.absent.insert(slot); }
EXPORT void record_give_null_handles() { recording.null_handles = true; }
EXPORT void record_say_of_events(int status) { recording.event_status = status; }
EXPORT void record_call_back(int mode) { recording.callbacks = mode; }
EXPORT void record_without_timer_fns() { recording.without_timer_fns = true; }
EXPORT void record_use_bfc_allocator(int mebibytes, int force_growth) {
  recording.use_bfc_allocator = true;
  recording.force_memory_growth = force_growth != 0;
  recording.free_bytes = recording.total_bytes = static_cast<int64_t>(mebibytes) << 20;
}
EXPORT int64_t record_allocated() { return recording.allocated; }
EXPORT void record_call_late() { call(late_callback, late_argument); }
EXPORT void record_join() {
  callback_thread->join();
  delete callback_thread;
  callback_thread = nullptr;
}
