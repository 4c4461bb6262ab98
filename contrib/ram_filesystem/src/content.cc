#include "content.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <new>
#include <utility>

namespace ram {
namespace {

constexpr size_t kAlignment = 64;  // what tensors that map a region ask for

// Most of the time of writing a big file goes into the kernel's handing out of pages: with huge
// ones 64 MiB were written five times as fast. The last of them may stay partly unused, so small
// buffers do without.
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kHugeFrom = 2 * kHugePage;

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

size_t unit_for(size_t capacity) { return capacity < kHugeFrom ? kAlignment : kHugePage; }

// `capacity` is a multiple of its unit.
char* allocate(size_t capacity) {
  void* memory = std::aligned_alloc(unit_for(capacity), capacity);
  if (memory == nullptr) throw std::bad_alloc();
  if (capacity >= kHugeFrom) madvise(memory, capacity, MADV_HUGEPAGE);  // no harm if it is refused
  return static_cast<char*>(memory);
}

// A buffer for `length` bytes, with room for more, that begins with those of `now`.
std::shared_ptr<Buffer> grown(const Snapshot& now, size_t length) {
  const size_t capacity = now.buffer == nullptr ? 0 : now.buffer->capacity();
  auto buffer = std::make_shared<Buffer>(std::max(length, 2 * capacity));
  buffer->claim(0, length);
  if (now.length > 0) std::memcpy(buffer->data(), now.buffer->data(), now.length);
  return buffer;
}

}  // namespace

int64_t wall_clock_nanoseconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Buffer::Buffer(size_t capacity)
    : capacity_(round_up(capacity, unit_for(capacity))), data_(allocate(capacity_)) {}

Buffer::~Buffer() { std::free(data_); }

bool Buffer::claim(size_t from, size_t n) {
  return n <= capacity_ - from && used_.compare_exchange_strong(from, from + n);
}

Content::Content() { state_.mtime_nsec = wall_clock_nanoseconds(); }

Snapshot Content::snapshot() const {
  const std::lock_guard lock(state_mutex_);
  return state_;
}

void Content::publish(std::shared_ptr<Buffer> buffer, size_t length) {
  const std::lock_guard lock(state_mutex_);
  state_.buffer.swap(buffer);
  state_.length = length;
  state_.mtime_nsec = wall_clock_nanoseconds();
}

Fault Content::append(const char* bytes, size_t n) {
  const std::lock_guard lock(append_mutex_);
  if (n == 0) return Fault::kNone;
  const Snapshot now = snapshot();
  std::shared_ptr<Buffer> buffer = now.buffer;
  if (buffer == nullptr || !buffer->claim(now.length, n)) {
    const Fault fault = caught([&] {
      buffer = grown(now, now.length + n);
      return Fault::kNone;
    });
    if (fault != Fault::kNone) return fault;
  }
  std::memcpy(buffer->data() + now.length, bytes, n);
  publish(std::move(buffer), now.length + n);
  return Fault::kNone;
}

void Content::share(const Content& other) {
  const Snapshot source = other.snapshot();
  publish(source.buffer, source.length);
}

}  // namespace ram
