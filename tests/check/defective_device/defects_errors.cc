// Defects of statuses and failures.
#include <atomic>

#include "defects.h"

namespace {

using namespace defective;

int64_t leaked = 0;

void copy_and_leak(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                   const void* source, uint64_t size, TF_Status* status) {
  if (size == 373) leaked += static_cast<int64_t>(size);
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

TF_Bool count_what_leaked(const SP_Device* device, SP_AllocatorStats* stats) {
  const TF_Bool known = original.executor.get_allocator_stats(device, stats);
  stats->bytes_in_use += leaked;
  return known;
}

// Sets the status where it fails only.
void leave_the_status(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                      uint8_t pattern, uint64_t size, TF_Status* status) {
  TF_Status* own = TF_NewStatus();
  original.executor.memset(device, stream, memory, pattern, size, own);
  if (TF_GetCode(own) != TF_OK) TF_SetStatus(status, TF_GetCode(own), TF_Message(own));
  TF_DeleteStatus(own);
}

void fail_without_a_word(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                         uint32_t pattern, uint64_t size, TF_Status* status) {
  if (size == 10) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "");
  original.executor.memset32(device, stream, memory, pattern, size, status);
}

bool refused = false;

void note_the_refusal(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                      uint32_t pattern, uint64_t size, TF_Status* status) {
  refused = refused || size == 6;
  original.executor.memset32(device, stream, memory, pattern, size, status);
}

void refuse_from_then_on(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* memory,
                         uint8_t pattern, uint64_t size, TF_Status* status) {
  if (refused && size == 503) return TF_SetStatus(status, TF_ABORTED, "the stream has failed");
  original.executor.memset(device, stream, memory, pattern, size, status);
}

std::atomic<bool> any_failed{false};
struct {
  SE_StatusCallbackFn function;
  void* argument;
} last_callback;

void call_and_note(void*, TF_Status* status) {
  last_callback.function(last_callback.argument, status);
  if (TF_GetCode(status) != TF_OK) any_failed = true;
}

TF_Bool note_the_failure(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                         void* argument) {
  last_callback = {function, argument};
  return original.executor.host_callback(device, stream, call_and_note, nullptr);
}

void show_any_failure(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  original.executor.get_stream_status(device, stream, status);
  if (any_failed) TF_SetStatus(status, TF_ABORTED, "some stream has failed");
}

void forget_failures(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  any_failed = false;
  original.executor.create_stream(device, stream, status);
}

void want_an_address(const SP_Device* device, SP_DeviceMemoryBase* target, const void* source,
                     uint64_t size, TF_Status* status) {
  if (source == nullptr) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "NULL");
  original.executor.sync_memcpy_htod(device, target, source, size, status);
}

}  // namespace

DEFECTS(errors) = {
    {"SE-222",
     [](Tables& tables) {
       tables.executor.memcpy_htod = copy_and_leak;
       tables.executor.get_allocator_stats = count_what_leaked;
     }},
    {"SE-288", [](Tables& tables) { tables.executor.memset = leave_the_status; }},
    {"SE-289", [](Tables& tables) { tables.executor.memset32 = fail_without_a_word; }},
    {"SE-290",
     [](Tables& tables) {
       tables.executor.memset32 = note_the_refusal;
       tables.executor.memset = refuse_from_then_on;
     }},
    {"SE-291",
     [](Tables& tables) {
       tables.executor.host_callback = note_the_failure;
       tables.executor.get_stream_status = show_any_failure;
       tables.executor.create_stream = forget_failures;
     }},
    {"SE-292", [](Tables& tables) { tables.executor.sync_memcpy_htod = want_an_address; }},
};
