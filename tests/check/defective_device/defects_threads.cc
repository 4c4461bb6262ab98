// Defects that show under threads, with a second device, or at the end of the process. They stand
// for races, and are none: a check must find them each time.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

#include "defects.h"

namespace {

using namespace defective;

// The number of the calling thread among those that have called, from 1.
int number_of_thread() {
  static std::atomic<int> threads{0};
  thread_local const int number = ++threads;
  return number;
}

// Has room for seven threads: the eighth gets another's bytes.
void mix_up_threads(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                    const void* source, uint64_t size, TF_Status* status) {
  const bool is_of_thread = size >= 5000 && size < 5008;
  const uint64_t copied = is_of_thread && number_of_thread() == 8 ? size - 64 : size;
  original.executor.memcpy_htod(device, stream, target, source, copied, status);
}

void lose_a_threads_copy(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                         const void* source, uint64_t size, TF_Status* status) {
  const bool is_lost = size == 1 && number_of_thread() == 8;
  if (is_lost) return TF_SetStatus(status, TF_OK, "");
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

std::mutex mutex;
std::map<SP_Stream, std::thread::id> recorders;  // NULL id: any thread

void create_for_one_recorder(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  original.executor.create_stream(device, stream, status);
  const std::lock_guard lock(mutex);
  recorders.erase(*stream);
}

void record_for_one_thread(const SP_Device* device, SP_Stream stream, SP_Event event,
                           TF_Status* status) {
  {
    const std::lock_guard lock(mutex);
    const auto me = std::this_thread::get_id();
    const auto recorder = recorders.emplace(stream, me).first->second;
    if (recorder != me && recorder != std::thread::id()) {
      return TF_SetStatus(status, TF_INTERNAL, "another thread records");
    }
  }
  original.executor.record_event(device, stream, event, status);
}

TF_Bool free_for_recorders(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                           void* argument) {
  {
    const std::lock_guard lock(mutex);
    recorders[stream] = std::thread::id();
  }
  return original.executor.host_callback(device, stream, function, argument);
}

void bring_anothers_bytes(const SP_Device* device, void* target,
                          const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  original.executor.sync_memcpy_dtoh(device, target, source, size, status);
  if (size == 6000 && number_of_thread() == 8) ++*static_cast<char*>(target);
}

void wait_for_nothing(const SP_Device*, SP_Stream, SP_Event, TF_Status* status) {
  TF_SetStatus(status, TF_OK, "");
}

void lose_what_is_for_the_second(const SP_Device* device, SP_Stream stream,
                                 SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                                 TF_Status* status) {
  const bool is_other = size == 521 && device->ordinal == 1;
  if (is_other) return TF_SetStatus(status, TF_OK, "");
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

std::atomic<bool> has_work{false};

void copy_and_note(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                   const void* source, uint64_t size, TF_Status* status) {
  if (size == (uint64_t{1} << 20) + 1) has_work = true;
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

void end_badly() {
  if (has_work) _exit(7);
}

}  // namespace

DEFECTS(threads) = {
    {"SE-293", [](Tables& tables) { tables.executor.memcpy_htod = mix_up_threads; }},
    {"SE-294", [](Tables& tables) { tables.executor.memcpy_htod = lose_a_threads_copy; }},
    {"SE-295",
     [](Tables& tables) {
       tables.executor.create_stream = create_for_one_recorder;
       tables.executor.record_event = record_for_one_thread;
       tables.executor.host_callback = free_for_recorders;
     }},
    {"SE-296", [](Tables& tables) { tables.executor.sync_memcpy_dtoh = bring_anothers_bytes; }},
    {"SE-297", [](Tables& tables) { tables.executor.wait_for_event = wait_for_nothing; }},
    {"SE-298",
     [](Tables& tables) {
       setenv("MTF_HOST_DEVICE_COUNT", "2", 1);
       tables.executor.memcpy_htod = lose_what_is_for_the_second;
     }},
    {"SE-299",
     [](Tables& tables) {
       tables.executor.memcpy_htod = copy_and_note;
       std::atexit(end_badly);
     }},
};
