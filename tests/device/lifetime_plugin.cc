// A device plugin of type LIFETIME, two devices, whose streams are threads. It frees nothing of what
// it made, so that each use of what was given back is noted as a fault instead of being one. A test
// can hold any of its functions, and the work of all streams, at a gate.
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lifetime_state.h"
#include "modular_tf/device.h"
#include "slots.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

using namespace lifetime;

namespace {

// -- memory --

Block* block_at(const char* slot, const void* address) {
  const std::lock_guard<std::mutex> lock(mutex);
  auto found = life.blocks.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (found != life.blocks.begin()) {
    Block* block = std::prev(found)->second;
    if (address < block->start + block->size) return block;
  }
  fault(std::string(slot) + " of memory that was never given out");
  return nullptr;
}

void* take(const char* slot, const char* kind, const SP_Device* device, uint64_t size) {
  Device* owner = enter(slot, device);
  void* address = nullptr;
  {
    const std::lock_guard<std::mutex> lock(mutex);
    std::swap(address, life.next_address);
  }
  if (address != nullptr) return address;  // of a block that is there
  auto* block = new Block;
  block->size = size;
  block->start = static_cast<char*>(std::aligned_alloc(256, (size + 255) / 256 * 256));
  if (block->start == nullptr) return nullptr;
  added(block, kind, owner->device);
  const std::lock_guard<std::mutex> lock(mutex);
  life.blocks[block->start] = block;
  return block->start;
}

void give_back(const char* slot, const SP_Device* device, void* address) {
  enter(slot, device);
  if (Block* block = block_at(slot, address)) remove(slot, block);
}

void allocate(const SP_Device* device, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  memory->struct_size = SP_DEVICE_MEMORY_BASE_STRUCT_SIZE;
  memory->opaque = take("allocate", "device memory", device, size);
  memory->size = size;
}
void deallocate(const SP_Device* device, SP_DeviceMemoryBase* memory) {
  give_back("deallocate", device, memory->opaque);
}
void* host_memory_allocate(const SP_Device* device, uint64_t size) {
  return take("host_memory_allocate", "host memory", device, size);
}
void host_memory_deallocate(const SP_Device* device, void* memory) {
  give_back("host_memory_deallocate", device, memory);
}
void* unified_memory_allocate(const SP_Device* device, uint64_t size) {
  return take("unified_memory_allocate", "unified memory", device, size);
}
void unified_memory_deallocate(const SP_Device* device, void* memory) {
  give_back("unified_memory_deallocate", device, memory);
}
TF_Bool get_allocator_stats(const SP_Device* device, SP_AllocatorStats*) {
  enter("get_allocator_stats", device);
  return 1;
}
TF_Bool device_memory_usage(const SP_Device* device, int64_t* free, int64_t* total) {
  enter("device_memory_usage", device);
  *free = *total = int64_t{1} << 30;
  return 1;
}

// -- streams, events, timers --

void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status*) {
  Device* owner = enter("create_stream", device);
  auto* made = added(new SP_Stream_st, "stream", owner->device);
  made->thread = std::thread([made] { made->run(); });
  const std::lock_guard<std::mutex> lock(mutex);
  owner->streams.insert(made);
  *stream = made;
}
void destroy_stream(const SP_Device* device, SP_Stream stream) {
  Device* owner = enter("destroy_stream", device);
  {
    const std::lock_guard<std::mutex> lock(mutex);
    owner->streams.erase(stream);
  }
  {
    const std::lock_guard<std::mutex> lock(stream->queue_mutex);
    stream->ends = true;
    stream->queue_changed.notify_all();
  }
  if (stream->thread.get_id() == std::this_thread::get_id()) {
    stream->thread.detach();
  } else {
    stream->thread.join();
  }
  remove("destroy_stream", stream);
}
void create_stream_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                              TF_Status*) {
  enter("create_stream_dependency", device);
  check("create_stream_dependency", dependent);
  check("create_stream_dependency", other);
  auto passed = std::make_shared<std::atomic<bool>>(false);
  other->put([passed] { *passed = true; });
  dependent->put([=] {
    while (!*passed) std::this_thread::yield();
  });
}
void get_stream_status(const SP_Device* device, SP_Stream stream, TF_Status*) {
  enter("get_stream_status", device);
  check("get_stream_status", stream);
}
void create_event(const SP_Device* device, SP_Event* event, TF_Status*) {
  Device* owner = enter("create_event", device);
  *event = added(new SP_Event_st, "event", owner->device);
}
void destroy_event(const SP_Device* device, SP_Event event) {
  enter("destroy_event", device);
  remove("destroy_event", event);
}
SE_EventStatus get_event_status(const SP_Device* device, SP_Event event) {
  enter("get_event_status", device);
  check("get_event_status", event);
  return event->pending != 0 ? SE_EVENT_PENDING : SE_EVENT_COMPLETE;
}
void record_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status*) {
  enter("record_event", device);
  check("record_event", stream);
  check("record_event", event);
  ++event->pending;
  stream->put([event] { --event->pending; });  // an event may be destroyed while it is pending
}
void wait_for_event(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status*) {
  enter("wait_for_event", device);
  check("wait_for_event", stream);
  check("wait_for_event", event);
  stream->put([event] {
    while (event->pending != 0) std::this_thread::yield();
  });
}
void block_host_for_event(const SP_Device* device, SP_Event event, TF_Status*) {
  enter("block_host_for_event", device);
  while (event->pending != 0) std::this_thread::yield();
  check("block_host_for_event", event);
}
void block_host_until_done(const SP_Device* device, SP_Stream stream, TF_Status*) {
  enter("block_host_until_done", device);
  stream->wait();
  check("block_host_until_done", stream);
}
void synchronize_all_activity(const SP_Device* device, TF_Status*) {
  Device* owner = enter("synchronize_all_activity", device);
  wait_for_device(owner);
  check("synchronize_all_activity", owner);
}
void create_timer(const SP_Device* device, SP_Timer* timer, TF_Status*) {
  Device* owner = enter("create_timer", device);
  *timer = added(new SP_Timer_st, "timer", owner->device);
}
void destroy_timer(const SP_Device* device, SP_Timer timer) {
  enter("destroy_timer", device);
  remove("destroy_timer", timer);
}
void start_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status*) {
  enter("start_timer", device);
  check("start_timer", stream);
  check("start_timer", timer);
}
void stop_timer(const SP_Device* device, SP_Stream stream, SP_Timer timer, TF_Status*) {
  enter("stop_timer", device);
  check("stop_timer", stream);
  check("stop_timer", timer);
}
uint64_t nanoseconds(SP_Timer timer) {
  check("nanoseconds", timer);
  return 1;
}

// -- copies and fills --

// What a piece of work touches is looked at when it is enqueued and when it runs.
void enqueue(const char* slot, const SP_Device* device, SP_Stream stream, const void* target,
             const void* source, std::function<void()> work) {
  enter(slot, device);
  check(slot, stream);
  Block* to = target == nullptr ? nullptr : block_at(slot, target);
  Block* from = source == nullptr ? nullptr : block_at(slot, source);
  stream->put([=] {
    if (to != nullptr) check(slot, to);
    if (from != nullptr) check(slot, from);
    work();
  });
}

void memcpy_dtoh(const SP_Device* device, SP_Stream stream, void* target,
                 const SP_DeviceMemoryBase* source, uint64_t size, TF_Status*) {
  const void* from = source->opaque;
  enqueue("memcpy_dtoh", device, stream, nullptr, from, [=] { std::memcpy(target, from, size); });
}
void memcpy_htod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                 const void* source, uint64_t size, TF_Status*) {
  void* to = target->opaque;
  enqueue("memcpy_htod", device, stream, to, nullptr, [=] { std::memcpy(to, source, size); });
}
void memcpy_dtod(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                 const SP_DeviceMemoryBase* source, uint64_t size, TF_Status*) {
  void* to = target->opaque;
  const void* from = source->opaque;
  enqueue("memcpy_dtod", device, stream, to, from, [=] { std::memmove(to, from, size); });
}
void fill(const char* slot, const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
          int value, uint64_t size) {
  void* to = target->opaque;
  enqueue(slot, device, stream, to, nullptr, [=] { std::memset(to, value, size); });
}
void mem_zero(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target, uint64_t size,
              TF_Status*) {
  fill("mem_zero", device, stream, target, 0, size);
}
void fill_bytes(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                uint8_t value, uint64_t size, TF_Status*) {
  fill("memset", device, stream, target, value, size);
}
void fill_words(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                uint32_t value, uint64_t size, TF_Status*) {
  fill("memset32", device, stream, target, static_cast<int>(value & 0xFF), size);
}

// Held in the middle, so that a memory that goes meanwhile is seen.
void copy_now(const char* slot, const SP_Device* device, const void* target, const void* source,
              const std::function<void()>& work) {
  Device* owner = device_of(device);
  check(slot, owner);
  Block* to = target == nullptr ? nullptr : block_at(slot, target);
  Block* from = source == nullptr ? nullptr : block_at(slot, source);
  enter(slot, device);
  if (to != nullptr) check(slot, to);
  if (from != nullptr) check(slot, from);
  work();
}
void sync_memcpy_dtoh(const SP_Device* device, void* target, const SP_DeviceMemoryBase* source,
                      uint64_t size, TF_Status*) {
  copy_now("sync_memcpy_dtoh", device, nullptr, source->opaque,
           [&] { std::memcpy(target, source->opaque, size); });
}
void sync_memcpy_htod(const SP_Device* device, SP_DeviceMemoryBase* target, const void* source,
                      uint64_t size, TF_Status*) {
  copy_now("sync_memcpy_htod", device, target->opaque, nullptr,
           [&] { std::memcpy(target->opaque, source, size); });
}
void sync_memcpy_dtod(const SP_Device* device, SP_DeviceMemoryBase* target,
                      const SP_DeviceMemoryBase* source, uint64_t size, TF_Status*) {
  copy_now("sync_memcpy_dtod", device, target->opaque, source->opaque,
           [&] { std::memmove(target->opaque, source->opaque, size); });
}
TF_Bool host_callback(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                      void* argument) {
  enter("host_callback", device);
  check("host_callback", stream);
  stream->put([=] {
    TF_Status* status = TF_NewStatus();
    function(argument, status);
    TF_DeleteStatus(status);
  });
  return 1;
}

// -- the platform --

void get_device_count(const SP_Platform*, int* count, TF_Status*) { *count = 2; }
void create_device(const SP_Platform*, SE_CreateDeviceParams* params, TF_Status*) {
  pass_gate("create_device");
  params->device->struct_size = SP_DEVICE_STRUCT_SIZE;
  params->device->ordinal = params->ordinal;
  params->device->device_handle = added(new Device, "device", params->ordinal);
}
void destroy_device(const SP_Platform*, SP_Device* device) {
  Device* destroyed = enter("destroy_device", device);
  remove("destroy_device", destroyed);
  const std::lock_guard<std::mutex> lock(mutex);
  for (const Object* object : life.alive) {
    if (object->device != destroyed->device) continue;
    fault(std::string("destroy_device while there is a ") + object->kind);
  }
}
int32_t get_numa_node(const SP_Device*) { return -1; }
int64_t get_memory_bandwidth(const SP_Device*) { return -1; }
double get_gflops(const SP_Device*) { return -1; }
void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status*) {
  *params->device_fns = {SP_DEVICE_FNS_STRUCT_SIZE, nullptr, get_numa_node, get_memory_bandwidth,
                         get_gflops};
}
void destroy_device_fns(const SP_Platform*, SP_DeviceFns*) {}
void create_stream_executor(const SP_Platform*, SE_CreateStreamExecutorParams* params, TF_Status*) {
  SP_StreamExecutor& table = *params->stream_executor;
  table.struct_size = SP_STREAMEXECUTOR_STRUCT_SIZE;
#define PUT(slot) table.slot = slot;
  EXECUTOR_SLOTS(PUT)
  table.memset = fill_bytes;
  table.memset32 = fill_words;
}
void destroy_stream_executor(const SP_Platform*, SP_StreamExecutor*) {}
void create_timer_fns(const SP_Platform*, SP_TimerFns* fns, TF_Status*) {
  fns->struct_size = SP_TIMER_FNS_STRUCT_SIZE;
  fns->nanoseconds = nanoseconds;
}
void destroy_timer_fns(const SP_Platform*, SP_TimerFns*) {}
void destroy_platform(SP_Platform*) {
  const std::lock_guard<std::mutex> lock(mutex);
  for (const Object* object : life.alive) {
    fault(std::string("destroy_platform while there is a ") + object->kind);
  }
}
void destroy_platform_fns(SP_PlatformFns*) {}

}  // namespace

EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status*) {
  params->platform->struct_size = SP_PLATFORM_STRUCT_SIZE;
  params->platform->name = "LIFETIME_PLATFORM";
  params->platform->type = "LIFETIME";
  params->platform->use_bfc_allocator = life.use_bfc_allocator;
  params->platform->force_memory_growth = life.use_bfc_allocator;
  SP_PlatformFns& fns = *params->platform_fns;
  fns.struct_size = SP_PLATFORM_FNS_STRUCT_SIZE;
#define PUT_PLATFORM(slot) fns.slot = slot;
  PLATFORM_SLOTS(PUT_PLATFORM)
  fns.create_timer_fns = create_timer_fns;
  fns.destroy_timer_fns = destroy_timer_fns;
  params->destroy_platform = destroy_platform;
  params->destroy_platform_fns = destroy_platform_fns;
}

EXPORT void life_reset() {
  const std::lock_guard<std::mutex> lock(mutex);
  life = {};
  changed.notify_all();
}
EXPORT void life_use_bfc_allocator() { life.use_bfc_allocator = true; }
EXPORT void life_hold(const char* name, int most) {
  const std::lock_guard<std::mutex> lock(mutex);
  life.gates.insert_or_assign(name, Gate{most});
}
EXPORT void life_let_go(const char* name) {
  const std::lock_guard<std::mutex> lock(mutex);
  life.gates.erase(name);
  changed.notify_all();
}
EXPORT void life_let_all_go() {
  const std::lock_guard<std::mutex> lock(mutex);
  life.gates.clear();
  changed.notify_all();
}
EXPORT int life_held(const char* name) {
  const std::lock_guard<std::mutex> lock(mutex);
  const auto gate = life.gates.find(name);
  return gate == life.gates.end() ? 0 : gate->second.held;
}
EXPORT void life_synchronize_in(const char* name) {
  const std::lock_guard<std::mutex> lock(mutex);
  life.synchronizing.insert(name);
}
EXPORT void life_give_next(void* address) {
  const std::lock_guard<std::mutex> lock(mutex);
  life.next_address = address;
}
EXPORT int life_outstanding() { return outstanding; }
EXPORT int life_alive(const char* kind) {
  const std::lock_guard<std::mutex> lock(mutex);
  int found = 0;
  for (const Object* object : life.alive) found += std::strcmp(object->kind, kind) == 0 ? 1 : 0;
  return found;
}
EXPORT const char* life_faults() {
  static std::string copy;
  const std::lock_guard<std::mutex> lock(mutex);
  copy = life.faults;
  return copy.c_str();
}
