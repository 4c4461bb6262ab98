// Defects of streams: order, waiting and dependencies.
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "defects.h"
#include "marked_work.h"

namespace {

using namespace defective;

void ok(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

// -- waiting for a stream, and its status ---------------------------------------------------------

std::set<SP_Stream> used;  // those that somebody has waited for or had called back

void create_unused(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  original.executor.create_stream(device, stream, status);
  used.erase(*stream);
}

void block_and_use(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  used.insert(stream);
  original.executor.block_host_until_done(device, stream, status);
}

TF_Bool call_back_and_use(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                          void* argument) {
  used.insert(stream);
  return original.executor.host_callback(device, stream, function, argument);
}

void refuse_unused(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  if (used.count(stream) == 0) return TF_SetStatus(status, TF_UNAVAILABLE, "not used yet");
  original.executor.get_stream_status(device, stream, status);
}

SP_Stream waited_for = nullptr;

void create_afresh(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  original.executor.create_stream(device, stream, status);
  waited_for = nullptr;
}

void refuse_to_wait_again(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  if (stream == waited_for) return TF_SetStatus(status, TF_INTERNAL, "there is nothing");
  waited_for = stream;
  original.executor.block_host_until_done(device, stream, status);
}

void wait_for_the_status(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  original.executor.block_host_until_done(device, stream, status);
}

void wait_for_nothing(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  if (take_mark()) return ok(status);
  original.executor.block_host_until_done(device, stream, status);
}

void synchronize_nothing(const SP_Device* device, TF_Status* status) {
  if (take_mark()) return ok(status);
  original.executor.synchronize_all_activity(device, status);
}

void want_a_stream(const SP_Device* device, TF_Status* status) {
  if (streams() == 0) return TF_SetStatus(status, TF_INTERNAL, "there is no stream");
  original.executor.synchronize_all_activity(device, status);
}

// -- how many -------------------------------------------------------------------------------------

constexpr int kInTurn = 150;
constexpr int kAtOnce = 60;
SP_Stream newest = nullptr;
int in_turn = 0;

void create_few_in_turn(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  if (in_turn == kInTurn) {
    in_turn = 0;
    return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no stream is left");
  }
  if (newest != nullptr) in_turn = 0;
  original.executor.create_stream(device, stream, status);
  newest = *stream;
}

void destroy_in_turn(const SP_Device* device, SP_Stream stream) {
  in_turn = stream == newest ? in_turn + 1 : 0;
  newest = nullptr;
  original.executor.destroy_stream(device, stream);
}

void (*create_and_count)(const SP_Device*, SP_Stream*, TF_Status*) = nullptr;

void create_few_at_once(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  if (streams() >= kAtOnce) {
    return TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "no stream is left");
  }
  create_and_count(device, stream, status);
}

// -- order ----------------------------------------------------------------------------------------

SP_Stream called_back = nullptr;

TF_Bool note_and_call_back(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                           void* argument) {
  called_back = stream;
  return original.executor.host_callback(device, stream, function, argument);
}

void copy_behind_another_stream(const SP_Device* device, SP_Stream stream,
                                SP_DeviceMemoryBase* target, const void* source, uint64_t size,
                                TF_Status* status) {
  if (size == 353) original.executor.create_stream_dependency(device, stream, called_back, status);
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

void read_at_once(const SP_Device* device, SP_Stream stream, void* target,
                  const SP_DeviceMemoryBase* source, uint64_t size, TF_Status* status) {
  if (size != 357) {
    return original.executor.memcpy_dtoh(device, stream, target, source, size, status);
  }
  std::memcpy(target, source->opaque, size);
  ok(status);
}

void lose_a_copy(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                 const void* source, uint64_t size, TF_Status* status) {
  if (size == 1 && *static_cast<const unsigned char*>(source) == 200) return ok(status);
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

void copy_nothing(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
                  const void* source, uint64_t size, TF_Status* status) {
  if (size == 379) return ok(status);
  original.executor.memcpy_htod(device, stream, target, source, size, status);
}

// -- dependencies ---------------------------------------------------------------------------------

void forget_the_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                           TF_Status* status) {
  if (take_mark()) return ok(status);
  original.executor.create_stream_dependency(device, dependent, other, status);
}

void block_for_the_dependency(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                              TF_Status* status) {
  if (take_mark()) return original.executor.block_host_until_done(device, other, status);
  original.executor.create_stream_dependency(device, dependent, other, status);
}

void refuse_itself(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                   TF_Status* status) {
  if (dependent == other) return TF_SetStatus(status, TF_FAILED_PRECONDITION, "the same stream");
  original.executor.create_stream_dependency(device, dependent, other, status);
}

constexpr int kLongestChain = 5;
std::map<SP_Stream, int> depths;

void create_without_depth(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  original.executor.create_stream(device, stream, status);
  depths.erase(*stream);
}

void break_the_chain(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                     TF_Status* status) {
  const int depth = depths[other] + 1;
  depths[dependent] = depth;
  if (depth == kLongestChain) return ok(status);
  original.executor.create_stream_dependency(device, dependent, other, status);
}

std::set<std::pair<SP_Stream, SP_Stream>> dependencies;

void create_independent(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  original.executor.create_stream(device, stream, status);
  dependencies.clear();
}

void refuse_a_circle(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                     TF_Status* status) {
  if (dependent != other && dependencies.count({other, dependent}) != 0) {
    return TF_SetStatus(status, TF_ABORTED, "a circle");
  }
  dependencies.insert({dependent, other});
  original.executor.create_stream_dependency(device, dependent, other, status);
}

SP_Stream for_ever_dependent = nullptr;

void depend_for_ever(const SP_Device* device, SP_Stream dependent, SP_Stream other,
                     TF_Status* status) {
  if (take_mark()) for_ever_dependent = dependent;
  original.executor.create_stream_dependency(device, dependent, other, status);
}

TF_Bool call_back_and_hold(const SP_Device* device, SP_Stream stream, SE_StatusCallbackFn function,
                           void* argument) {
  const TF_Bool taken = original.executor.host_callback(device, stream, function, argument);
  if (for_ever_dependent == nullptr) return taken;
  TF_Status* status = TF_NewStatus();
  original.executor.create_stream_dependency(device, for_ever_dependent, stream, status);
  TF_DeleteStatus(status);
  for_ever_dependent = nullptr;
  return taken;
}

}  // namespace

DEFECTS(streams) = {
    {"SE-235",
     [](Tables& tables) {
       tables.executor.create_stream = create_unused;
       tables.executor.block_host_until_done = block_and_use;
       tables.executor.host_callback = call_back_and_use;
       tables.executor.get_stream_status = refuse_unused;
     }},
    {"SE-236",
     [](Tables& tables) {
       tables.executor.create_stream = create_afresh;
       tables.executor.block_host_until_done = refuse_to_wait_again;
     }},
    {"SE-237", [](Tables& tables) { tables.executor.get_stream_status = wait_for_the_status; }},
    {"SE-238",
     [](Tables& tables) {
       tables.executor.create_stream = create_few_in_turn;
       tables.executor.destroy_stream = destroy_in_turn;
     }},
    {"SE-239",
     [](Tables& tables) {
       count_streams(tables);
       create_and_count = tables.executor.create_stream;
       tables.executor.create_stream = create_few_at_once;
     }},
    {"SE-240",
     [](Tables& tables) {
       tables.executor.host_callback = note_and_call_back;
       tables.executor.memcpy_htod = copy_behind_another_stream;
     }},
    {"SE-241", [](Tables& tables) { tables.executor.memcpy_dtoh = read_at_once; }},
    {"SE-242", [](Tables& tables) { tables.executor.memcpy_htod = lose_a_copy; }},
    {"SE-243",
     [](Tables& tables) {
       watch_for_mark(tables, 359);
       tables.executor.block_host_until_done = wait_for_nothing;
     }},
    {"SE-244",
     [](Tables& tables) {
       watch_for_mark(tables, 361);
       tables.executor.create_stream_dependency = forget_the_dependency;
     }},
    {"SE-245",
     [](Tables& tables) {
       watch_for_mark(tables, 363);
       tables.executor.create_stream_dependency = block_for_the_dependency;
     }},
    {"SE-246", [](Tables& tables) { tables.executor.create_stream_dependency = refuse_itself; }},
    {"SE-247",
     [](Tables& tables) {
       tables.executor.create_stream = create_without_depth;
       tables.executor.create_stream_dependency = break_the_chain;
     }},
    {"SE-248",
     [](Tables& tables) {
       tables.executor.create_stream = create_independent;
       tables.executor.create_stream_dependency = refuse_a_circle;
     }},
    {"SE-249",
     [](Tables& tables) {
       watch_for_mark(tables, 373);
       tables.executor.create_stream_dependency = depend_for_ever;
       tables.executor.host_callback = call_back_and_hold;
     }},
    {"SE-250", [](Tables& tables) { tables.executor.memcpy_htod = copy_nothing; }},
    {"SE-251",
     [](Tables& tables) {
       watch_for_mark(tables, 383);
       tables.executor.synchronize_all_activity = synchronize_nothing;
     }},
    {"SE-252",
     [](Tables& tables) {
       count_streams(tables);
       tables.executor.synchronize_all_activity = want_a_stream;
     }},
};
