// The arena itself, without its lock and its C interface.
#ifndef MODULAR_TF_CORE_ARENA_ALLOCATOR_H_
#define MODULAR_TF_CORE_ARENA_ALLOCATOR_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arena.h"
#include "arena_chunks.h"

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

// [one thread at a time] Functions may throw std::bad_alloc; the arena is then as it was before.
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
  uint64_t allocated_bytes(uintptr_t address) const;
  mtf_arena_stats stats() const;
  std::string picture() const;

 private:
  enum class Outcome { kAdded, kRefused, kUnaligned, kFailed };

  uintptr_t occupy(Chunk* chunk, uint64_t requested, uint64_t rounded);
  void split(Chunk* chunk, uint64_t bytes);
  Chunk* coalesce(Chunk* chunk);
  void absorb_next(Chunk* chunk);

  bool extend(uint64_t rounded, mtf_error** error);
  Outcome add_region(uint64_t bytes, uint64_t least, mtf_error** error);
  void* ask_source(uint64_t bytes, mtf_error** error) const;
  void adopt(std::unique_ptr<Region> region);
  const Region* overlapping(uintptr_t start, uint64_t bytes) const;
  bool collect_garbage(uint64_t rounded, mtf_error** error);
  mtf_error* drop_region(size_t index);
  mtf_error* drop_all();
  mtf_error* give_to_source(uintptr_t address, uint64_t bytes);
  uint64_t room() const;

  mtf_error* out_of_memory(uint64_t bytes) const;
  mtf_error* not_live(uintptr_t address) const;
  void draw_regions(std::string* text) const;
  void draw_bins(std::string* text) const;

  const std::string name_;
  const mtf_arena_options options_;
  ChunkPool pool_;
  FreeBins bins_;
  LiveChunks live_;
  std::vector<std::unique_ptr<Region>> regions_;
  uint64_t next_region_;
  uint64_t padding_ = 0;  // asked for on top, once the source returned an unaligned region
  bool closed_ = false;
  mtf_arena_stats stats_ = {};
};

}  // namespace mtf
#endif
