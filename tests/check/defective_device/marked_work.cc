#include "marked_work.h"

#include <atomic>

namespace defective {
namespace {

uint64_t mark_bytes = 0;
std::atomic<bool> mark_stands{false};
SP_Event event_of_mark = nullptr;
SP_Stream stream_of_mark = nullptr;
std::atomic<int> stream_count{0};

void copy(const SP_Device* device, SP_Stream stream, SP_DeviceMemoryBase* target,
          const void* source, uint64_t size, TF_Status* status) {
  original.executor.memcpy_htod(device, stream, target, source, size, status);
  mark_stands = size == mark_bytes;
}

void record(const SP_Device* device, SP_Stream stream, SP_Event event, TF_Status* status) {
  original.executor.record_event(device, stream, event, status);
  if (!take_mark()) return;
  event_of_mark = event;
  stream_of_mark = stream;
}

void destroy(const SP_Device* device, SP_Event event) {
  if (is_marked(event)) event_of_mark = nullptr;
  original.executor.destroy_event(device, event);
}

void create_and_count(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  original.executor.create_stream(device, stream, status);
  ++stream_count;
}

void destroy_and_count(const SP_Device* device, SP_Stream stream) {
  --stream_count;
  original.executor.destroy_stream(device, stream);
}

}  // namespace

void watch_for_mark(Tables& tables, uint64_t n_bytes) {
  mark_bytes = n_bytes;
  tables.executor.memcpy_htod = copy;
}

bool take_mark() { return mark_stands.exchange(false); }

void watch_for_marked_event(Tables& tables, uint64_t n_bytes) {
  watch_for_mark(tables, n_bytes);
  tables.executor.record_event = record;
  tables.executor.destroy_event = destroy;
}

bool is_marked(SP_Event event) { return event != nullptr && event == event_of_mark; }

SP_Stream marked_stream() { return stream_of_mark; }

void count_streams(Tables& tables) {
  tables.executor.create_stream = create_and_count;
  tables.executor.destroy_stream = destroy_and_count;
}

int streams() { return stream_count; }

}  // namespace defective
