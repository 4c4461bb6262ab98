// Memory that the host and a worker share, for the long payloads of one channel.
#pragma once

#include <sys/mman.h>
#include <sys/stat.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace mtf {

// It begins with a part whose first word says who uses the rest: the host from before it writes a request until it
// has read the reply, or the worker while it gives back the memory of a channel that nobody has used for a while.
// The other side may write anything there: then the host takes another area.
class Area {
 public:
  enum User : uint32_t { kNobody, kHost, kWorker };
  static constexpr size_t kStart = size_t{64} << 10;  // whole pages, of 64 KiB too, as on some ARM kernels

  Area() = default;
  ~Area() { unmap(); }
  Area(const Area&) = delete;
  Area& operator=(const Area&) = delete;

  // Maps a file, and unmaps what was mapped before. False: it cannot be, and nothing has changed.
  bool map(int file) {
    struct stat found;
    if (file < 0 || fstat(file, &found) != 0 || found.st_size <= static_cast<off_t>(kStart)) return false;
    const auto size = static_cast<size_t>(found.st_size);
    void* made = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (made == MAP_FAILED) return false;
    unmap();
    memory_ = static_cast<char*>(made);
    size_ = size - kStart;
    return true;
  }
  void unmap() {
    if (memory_ != nullptr) munmap(memory_, kStart + size_);
    memory_ = nullptr;
    size_ = 0;
  }

  size_t size() const { return size_; }  // of the payload; 0: nothing is mapped
  char* bytes() const { return memory_ + kStart; }

  bool take(User user) {
    uint32_t found = kNobody;
    return word().compare_exchange_strong(found, user) || found == user;
  }
  void leave(User user) {
    uint32_t found = user;
    if (memory_ != nullptr) word().compare_exchange_strong(found, kNobody);
  }
  // Gives the memory back, unless the host uses it.
  bool empty() {
    if (!take(kWorker)) return false;
    madvise(bytes(), size_, MADV_REMOVE);
    leave(kWorker);
    return true;
  }

 private:
  std::atomic<uint32_t>& word() const { return *reinterpret_cast<std::atomic<uint32_t>*>(memory_); }

  char* memory_ = nullptr;
  size_t size_ = 0;
};

}  // namespace mtf
