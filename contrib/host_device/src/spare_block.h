// One large block that was freed, kept for the next allocation of its size.
#pragma once

#include <cstddef>

namespace host {

// Fresh memory costs as much to write for the first time as to copy into: whoever sends arrays of
// one size, one after the other, pays that once. The pages of a kept block are the system's to take
// back when it needs them. [one thread at a time]
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

}  // namespace host
