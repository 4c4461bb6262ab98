// A device plugin whose streams are threads, and which counts what is alive.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "modular_tf/device.h"
#include "status.h"

struct SP_Stream_st {
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<std::function<void()>> queue;
  int unfinished = 0;
  bool ends = false;
  std::thread thread{[this] { run(); }};

  void put(std::function<void()> work) {
    const std::lock_guard<std::mutex> lock(mutex);
    queue.push_back(std::move(work));
    ++unfinished;
    changed.notify_all();
  }
  void run() {
    std::unique_lock<std::mutex> lock(mutex);
    for (;;) {
      changed.wait(lock, [this] { return ends || !queue.empty(); });
      if (queue.empty()) return;
      const std::function<void()> work = std::move(queue.front());
      queue.pop_front();
      lock.unlock();
      work();
      lock.lock();
      --unfinished;
      changed.notify_all();
    }
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [this] { return unfinished == 0; });
  }
};
struct SP_Event_st {
  std::shared_ptr<std::atomic<int>> pending = std::make_shared<std::atomic<int>>(0);
};
struct SP_Timer_st {};

namespace {

std::atomic<int> alive{0};  // objects of plugins

struct Device {
  std::mutex mutex;
  std::vector<SP_Stream> streams;
};

Device* device_of(const SP_Device* device) { return static_cast<Device*>(device->device_handle); }

void* take(uint64_t size) {
  void* memory = std::aligned_alloc(256, (size + 255) / 256 * 256);
  std::memset(memory, 0, size);
  ++alive;
  return memory;
}
void give_back(void* memory) {
  std::free(memory);
  --alive;
}
void allocate(const SP_Device*, uint64_t size, int64_t, SP_DeviceMemoryBase* memory) {
  memory->opaque = take(size);
}
void deallocate(const SP_Device*, SP_DeviceMemoryBase* memory) { give_back(memory->opaque); }
void* host_memory_allocate(const SP_Device*, uint64_t size) { return take(size); }
void host_memory_deallocate(const SP_Device*, void* memory) { give_back(memory); }

void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status*) {
  *stream = new SP_Stream_st;
  ++alive;
  const std::lock_guard<std::mutex> lock(device_of(device)->mutex);
  device_of(device)->streams.push_back(*stream);
}
void destroy_stream(const SP_Device* device, SP_Stream stream) {
  {
    const std::lock_guard<std::mutex> lock(device_of(device)->mutex);
    auto& streams = device_of(device)->streams;
    for (SP_Stream& each : streams) {
      if (each == stream) std::swap(each, streams.back());
    }
    streams.pop_back();
  }
  {
    const std::lock_guard<std::mutex> lock(stream->mutex);
    stream->ends = true;
    stream->changed.notify_all();
  }
  stream->thread.join();
  delete stream;
  --alive;
}
void synchronize(const SP_Device* device, TF_Status*) {
  const std::lock_guard<std::mutex> lock(device_of(device)->mutex);  // no stream goes meanwhile
  for (SP_Stream stream : device_of(device)->streams) stream->wait();
}
void depend(const SP_Device*, SP_Stream dependent, SP_Stream other, TF_Status*) {
  if (dependent == other) return;
  auto passed = std::make_shared<std::atomic<bool>>(false);
  other->put([passed] { *passed = true; });
  dependent->put([passed] {
    while (!*passed) std::this_thread::yield();
  });
}
void create_event(const SP_Device*, SP_Event* event, TF_Status*) {
  *event = new SP_Event_st;
  ++alive;
}
void destroy_event(const SP_Device*, SP_Event event) {
  delete event;
  --alive;
}
SE_EventStatus event_status(const SP_Device*, SP_Event event) {
  return *event->pending != 0 ? SE_EVENT_PENDING : SE_EVENT_COMPLETE;
}
void record_event(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status*) {
  ++*event->pending;
  stream->put([pending = event->pending] { --*pending; });
}
void wait_for_event(const SP_Device*, SP_Stream stream, SP_Event event, TF_Status*) {
  stream->put([pending = event->pending] {
    for (int looks = 0; *pending != 0 && looks < 1000; ++looks) std::this_thread::yield();
  });
}
void block_for_event(const SP_Device*, SP_Event event, TF_Status*) {
  while (*event->pending != 0) std::this_thread::yield();
}
void block_until_done(const SP_Device*, SP_Stream stream, TF_Status*) { stream->wait(); }
void create_timer(const SP_Device*, SP_Timer* timer, TF_Status*) {
  *timer = new SP_Timer_st;
  ++alive;
}
void destroy_timer(const SP_Device*, SP_Timer timer) {
  delete timer;
  --alive;
}
void use_timer(const SP_Device*, SP_Stream, SP_Timer, TF_Status*) {}
uint64_t nanoseconds(SP_Timer) { return 1; }

// What a copy touches it touches on the thread of its stream, which the sanitizer sees.
void memcpy_dtod(const SP_Device*, SP_Stream stream, SP_DeviceMemoryBase* target,
                 const SP_DeviceMemoryBase* source, uint64_t size, TF_Status*) {
  stream->put([to = target->opaque, from = source->opaque, size] {
    volatile char sum = 0;
    for (uint64_t at = 0; at < size; ++at) sum = sum + static_cast<char*>(from)[at];
    (void)to;
  });
}
void sync_memcpy_dtoh(const SP_Device*, void* target, const SP_DeviceMemoryBase* source,
                      uint64_t size, TF_Status*) {
  for (uint64_t at = 0; at < size; ++at) {
    static_cast<char*>(target)[at] = static_cast<char*>(source->opaque)[at];
    if (at % 64 == 0) std::this_thread::yield();
  }
}
TF_Bool host_callback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn function,
                      void* argument) {
  stream->put([=] {
    TF_Status status = {};
    function(argument, &status);
    mtf_status_clear(&status);
  });
  return 1;
}

SP_StreamExecutor device_table() {
  SP_StreamExecutor table = {};
  table.allocate = allocate;
  table.deallocate = deallocate;
  table.host_memory_allocate = host_memory_allocate;
  table.host_memory_deallocate = host_memory_deallocate;
  table.create_stream = create_stream;
  table.destroy_stream = destroy_stream;
  table.create_stream_dependency = depend;
  table.create_event = create_event;
  table.destroy_event = destroy_event;
  table.get_event_status = event_status;
  table.record_event = record_event;
  table.wait_for_event = wait_for_event;
  table.block_host_for_event = block_for_event;
  table.block_host_until_done = block_until_done;
  table.synchronize_all_activity = synchronize;
  table.create_timer = create_timer;
  table.destroy_timer = destroy_timer;
  table.start_timer = table.stop_timer = use_timer;
  table.memcpy_dtod = memcpy_dtod;
  table.sync_memcpy_dtoh = sync_memcpy_dtoh;
  table.host_callback = host_callback;
  return table;
}

}  // namespace
