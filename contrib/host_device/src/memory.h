// The memory of one device: taken from the heap, and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "device/plugin.h"

namespace host {

// One large block that was freed, kept for the next allocation of its size. Fresh memory costs as much
// to write for the first time as to copy into: arrays of one size, sent one after the other, pay that
// once. The pages of a kept block are the system's to take back when it needs them. [one thread at a
// time]
class SpareBlock {
 public:
  SpareBlock() = default;
  SpareBlock(const SpareBlock&) = delete;
  SpareBlock& operator=(const SpareBlock&) = delete;
  ~SpareBlock() { drop(); }

  // Returns the kept block if it has this size, else NULL; it is the caller's then.
  void* take(size_t bytes);

  // Keeps a block of whole pages instead of the one that it has kept so far. Returns what is to be
  // freed: that one, or the new one if it is too large to keep; NULL for nothing.
  void* keep(void* memory, size_t bytes);

  // Frees the kept block; false if there is none.
  bool drop();

 private:
  void* memory_ = nullptr;
  size_t bytes_ = 0;
};

// Not counted. NULL when there is none left. 0 bytes give an address too.
void* allocate_aligned(uint64_t bytes);
void free_aligned(void* memory);

// [any thread]
class Memory {
 public:
  // NULL when there is none left. What it holds is not set.
  void* allocate(uint64_t bytes);

  // Hosts pass the address alone, so the sizes are kept here. An address that is not of this
  // memory is left alone.
  void deallocate(void* memory);

  device::MemoryCounts counts() const;

 private:
  void* take_spare(uint64_t bytes);
  bool drop_spare();

  mutable std::mutex mutex_;
  std::unordered_map<void*, int64_t> sizes_;
  SpareBlock spare_;
  device::MemoryCounts counts_;
};

}  // namespace host
