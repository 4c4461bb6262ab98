// The arena itself, without its C interface.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arena.h"
#include "arena_chunks.h"
#include "fork_lock.h"

namespace mtf {

// One piece of memory from the source. Its chunks, from `first` on, cover it without gaps.
struct Region {
  uintptr_t given = 0;  // as the source gave it, and as it goes back
  uint64_t given_bytes = 0;
  uintptr_t start = 0;  // what the arena uses: aligned, in whole units
  uint64_t bytes = 0;
  Chunk* first = nullptr;

  bool is_unused() const { return first->is_free() && first->next == nullptr; }
};

// [any thread] Functions may throw std::bad_alloc; the arena is then as it was before.
class Arena {
 public:
  explicit Arena(const mtf_arena_options& options);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  uintptr_t take(uint64_t bytes);
  mtf_error* allocate(uint64_t bytes, uintptr_t* address);
  mtf_error* free(uintptr_t address);
  mtf_error* close();
  // Whether another thread used it at a fork: its tables may be half changed, so it refuses all calls
  // in the child and must not be destroyed there.
  bool is_abandoned();
  uint64_t allocated_bytes(uintptr_t address);
  mtf_allocator_stats stats();
  std::string picture();

 private:
  enum class Outcome { kAdded, kRefused, kUnaligned, kFailed };
  using Regions = std::vector<std::unique_ptr<Region>>;
  class Growth;

  // All that follows needs the lock. What is given a UniqueLock calls the source, and does not hold
  // the lock meanwhile: other threads may have changed everything but the regions when it returns.
  uintptr_t find(uint64_t bytes);
  uintptr_t occupy(Chunk* chunk, uint64_t requested, uint64_t rounded);
  void split(Chunk* chunk, uint64_t bytes);
  Chunk* coalesce(Chunk* chunk);
  void absorb_next(Chunk* chunk);

  mtf_error* grow(UniqueLock& lock, uint64_t bytes, uintptr_t* address);
  bool extend(UniqueLock& lock, uint64_t rounded, mtf_error** error);
  Outcome add_region(UniqueLock& lock, uint64_t bytes, uint64_t least, mtf_error** error);
  void* ask_source(UniqueLock& lock, uint64_t bytes, mtf_error** error);
  Outcome judge(Region* region, uint64_t least, mtf_error** error);
  std::unique_ptr<Region> make_region();
  void adopt(std::unique_ptr<Region> region);
  const Region* overlapping(uintptr_t start, uint64_t bytes) const;
  bool collect_garbage(UniqueLock& lock, uint64_t rounded, mtf_error** error);
  mtf_error* drop_all(UniqueLock& lock);
  void forget(const Region& region);
  mtf_error* give_all_back(UniqueLock& lock, const Regions& regions);
  mtf_error* give_back(UniqueLock& lock, const Region& region);
  bool is_growing() const { return growing_ == fork_generation(); }
  uint64_t room() const;

  mtf_error* closed_error() const;
  mtf_error* abandoned_error() const;
  mtf_error* out_of_memory(uint64_t bytes) const;
  mtf_error* given_twice(uintptr_t address) const;
  mtf_error* not_live(uintptr_t address) const;
  mtf_allocator_stats figures() const;
  std::string draw() const;
  void draw_regions(std::string* text) const;
  void draw_bins(std::string* text) const;

  const std::string name_;
  const mtf_arena_options options_;

  Lock mutex_;  // of what follows
  Signal changed_;
  ChunkPool pool_;
  FreeChunks free_;
  LiveChunks live_;
  Regions regions_;
  // The process in which a thread asks the source for a region; only that thread adds some. A child
  // has no such thread.
  std::optional<unsigned> growing_;
  uint64_t next_region_;
  uint64_t padding_ = 0;  // asked for on top, once the source returned an unaligned region
  bool closed_ = false;
  mtf_allocator_stats stats_ = {};
};

}  // namespace mtf
