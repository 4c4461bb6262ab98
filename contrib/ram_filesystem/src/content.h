// The bytes of one file.
//
// Bytes once written never change and never move while somebody looks at them: a file only grows,
// and a file that is created anew is a new Content. So a reader needs no lock for the bytes, only
// for the pair (buffer, length), and regions and copies share the buffer.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <new>

namespace ram {

// Inside the plugin faults travel as values; TF_Status is for the outside.
enum class Fault {
  kNone,
  kMissing,
  kParentIsFile,
  kIsDirectory,
  kNotDirectory,
  kExists,
  kNotEmpty,
  kIsRoot,
  kEmptyFile,
  kEndOfFile,
  kClosed,
  kNoMemory,
  kInternal,
};

// Runs `body`, which returns a Fault; no exception leaves it, since the caller is C.
template <class Body>
Fault caught(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fault::kNoMemory;
  } catch (const std::exception&) {
    return Fault::kInternal;
  }
}

// Nanoseconds since 1970.
int64_t wall_clock_nanoseconds();

// Memory aligned for tensors, used from the front.
class Buffer {
 public:
  explicit Buffer(size_t capacity);  // throws std::bad_alloc
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Takes [from, from + n) for the caller to write, if nobody has taken `from` and there is room.
  // Copies of a file share its buffer; the first to append goes on in it, the others move out.
  bool claim(size_t from, size_t n);

  size_t capacity() const { return capacity_; }
  char* data() { return data_; }
  const char* data() const { return data_; }

 private:
  const size_t capacity_;
  char* const data_;
  std::atomic<size_t> used_{0};
};

// The first `length` bytes of `buffer`, as they were at one moment and stay. `buffer` is NULL when
// nothing was ever written.
struct Snapshot {
  std::shared_ptr<Buffer> buffer;
  size_t length = 0;
  int64_t mtime_nsec = 0;
};

// [any thread]
class Content {
 public:
  Content();
  Content(const Content&) = delete;
  Content& operator=(const Content&) = delete;

  Snapshot snapshot() const;

  // All of `bytes` or nothing. Appenders wait for each other, readers for neither.
  Fault append(const char* bytes, size_t n);

  // Makes this empty file hold what `other` holds now, without copying bytes.
  void share(const Content& other);

 private:
  void publish(std::shared_ptr<Buffer> buffer, size_t length);

  std::mutex append_mutex_;          // held for a whole append
  mutable std::mutex state_mutex_;   // held for the exchange of state_
  Snapshot state_;
};

}  // namespace ram
