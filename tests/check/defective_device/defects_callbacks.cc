// Defects of host callbacks.
#include <cstring>

#include "defects.h"
#include "marked_work.h"

namespace {

using namespace defective;

struct Callback {
  SE_StatusCallbackFn function = nullptr;
  void* argument = nullptr;
};

TF_Bool deny(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
             void* argument) {
  const bool is_denied = take_mark();
  const TF_Bool taken = original.executor.host_callback(device, stream, function, argument);
  return is_denied ? 0 : taken;  // TF_OK
}

TF_Bool call_twice(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                   void* argument) {
  if (take_mark()) original.executor.host_callback(device, stream, function, argument);
  return original.executor.host_callback(device, stream, function, argument);
}

// The second callback behind the mark comes after the third.
TF_Bool swap_two(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                 void* argument) {
  static int place = -1;  // behind the mark; the first callback there is 0
  static Callback second;
  if (take_mark()) place = 0;
  if (place >= 0 && place++ == 1) {
    second = {function, argument};
    return 1;
  }
  const TF_Bool taken = original.executor.host_callback(device, stream, function, argument);
  if (place != 3) return taken;
  place = -1;
  return original.executor.host_callback(device, stream, second.function, second.argument);
}

struct LateRead {
  SP_DeviceMemoryBase source{};
  void* target = nullptr;
};
LateRead late_read;

void read_later(const SP_Device* device, SP_Stream stream, void* target,
                const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  if (size != 467) {
    return original.executor.memcpy_dtoh(device, stream, target, source, size, status);
  }
  late_read = {*source, target};
  TF_SetStatus(status, TF_OK, "");
}

TF_Bool call_before_the_read(const SP_Device* device, SP_Stream stream,
                             SE_StatusCallbackFn function, void* argument) {
  const TF_Bool taken = original.executor.host_callback(device, stream, function, argument);
  if (late_read.target == nullptr) return taken;
  TF_Status* status = TF_NewStatus();
  original.executor.memcpy_dtoh(device, stream, late_read.target, &late_read.source, 467, status);
  TF_DeleteStatus(status);
  late_read.target = nullptr;
  return taken;
}

void write_at_once(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                   const void* source, uint64_t size, TF_Status* status) {
  if (size != 473) {
    return original.executor.memcpy_htod(device, stream, target, source, size, status);
  }
  std::memcpy(target->opaque, source, size);
  TF_SetStatus(status, TF_OK, "");
}

// On the caller's thread.
TF_Bool call_at_once(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                     void* argument) {
  if (!take_mark()) return original.executor.host_callback(device, stream, function, argument);
  TF_Status* status = TF_NewStatus();
  function(argument, status);
  TF_DeleteStatus(status);
  return 1;
}

Callback silenced;

void call_silenced(void*, TF_Status*) {
  TF_Status* status = TF_NewStatus();
  silenced.function(silenced.argument, status);
  TF_DeleteStatus(status);
}

TF_Bool lose_the_failure(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                         void* argument) {
  if (!take_mark()) return original.executor.host_callback(device, stream, function, argument);
  silenced = {function, argument};
  return original.executor.host_callback(device, stream, call_silenced, nullptr);
}

TF_Bool drop_one_of_many(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                         void* argument) {
  static int until_drop = 0;
  if (take_mark()) until_drop = 100;
  if (until_drop > 0 && --until_drop == 0) return 1;
  return original.executor.host_callback(device, stream, function, argument);
}

void refuse_in_a_callback(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                          const void* source, uint64_t size, TF_Status* status) {
  if (size == 491) return TF_SetStatus(status, TF_FAILED_PRECONDITION, "not in a callback");
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

void wait_for_no_callback(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  if (take_mark()) return TF_SetStatus(status, TF_OK, "");
  original.executor.block_host_until_done(device, stream, status);
}

TF_Bool call_none(const SP_Device*, SP_Stream, SE_StatusCallbackFn, void*) { return 1; }

void watch_callbacks(Tables& tables, uint64_t n_bytes,
                     TF_Bool (*host_callback)(const SP_Device*, SP_Stream, SE_StatusCallbackFn,
                                              void*)) {
  watch_for_mark(tables, n_bytes);
  tables.executor.host_callback = host_callback;
}

}  // namespace

DEFECTS(callbacks) = {
    {"SE-278", [](Tables& tables) { watch_callbacks(tables, 461, deny); }},
    {"SE-279", [](Tables& tables) { watch_callbacks(tables, 463, call_twice); }},
    {"SE-280", [](Tables& tables) { watch_callbacks(tables, 465, swap_two); }},
    {"SE-281",
     [](Tables& tables) {
       tables.executor.memcpy_dtoh = read_later;
       tables.executor.host_callback = call_before_the_read;
     }},
    {"SE-282", [](Tables& tables) { tables.executor.memcpy_htod = write_at_once; }},
    {"SE-283", [](Tables& tables) { watch_callbacks(tables, 479, call_at_once); }},
    {"SE-284", [](Tables& tables) { watch_callbacks(tables, 487, lose_the_failure); }},
    {"SE-285", [](Tables& tables) { watch_callbacks(tables, 497, drop_one_of_many); }},
    {"SE-286", [](Tables& tables) { tables.executor.memcpy_htod = refuse_in_a_callback; }},
    {"SE-287",
     [](Tables& tables) {
       watch_for_mark(tables, 493);
       tables.executor.block_host_until_done = wait_for_no_callback;
     }},
    // Which many checks find, where they would hold a stream by a callback.
    {"callbacks-are-not-called", [](Tables& tables) { tables.executor.host_callback = call_none; }},
};
