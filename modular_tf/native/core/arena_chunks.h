// The chunks that regions are cut into, and where the arena finds them: free ones by size, live
// ones by address. Nothing here touches the memory that a chunk stands for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <set>
#include <utility>
#include <vector>

namespace mtf {

constexpr uint64_t kChunkUnit = 256;  // sizes and addresses are multiples of it

struct Chunk;
struct Region;

// What a search compares, so that it need not look at the chunks themselves.
struct FreeEntry {
  uint64_t bytes;
  uintptr_t address;
  Chunk* chunk;
};

// The smallest first and, among equals, the lowest address.
struct BySize {
  using is_transparent = void;
  bool operator()(const FreeEntry& left, const FreeEntry& right) const {
    return left.bytes != right.bytes ? left.bytes < right.bytes : left.address < right.address;
  }
  bool operator()(const FreeEntry& entry, uint64_t bytes) const { return entry.bytes < bytes; }
};

using FreeSet = std::set<FreeEntry, BySize>;

struct Chunk {
  uintptr_t address = 0;
  uint64_t bytes = 0;
  uint64_t requested = 0;  // what the user asked for; 0 while the chunk is free
  Region* region = nullptr;
  Chunk* previous = nullptr;  // neighbours in the region, by address
  Chunk* next = nullptr;
  Chunk* link = nullptr;      // the next one in the same bucket, or on the spare list
  FreeSet::iterator place;   // among the free ones, while it is one
  FreeSet::node_type node;   // what its place needs, while it has none

  bool is_free() const { return requested == 0; }
};

// Free chunks by size. Insertion and removal allocate nothing.
class FreeChunks {
 public:
  void insert(Chunk* chunk) {
    chunk->node.value() = {chunk->bytes, chunk->address, chunk};
    chunk->place = all_.insert(std::move(chunk->node)).position;
  }
  void remove(Chunk* chunk) { chunk->node = all_.extract(chunk->place); }
  // The smallest chunk that has `bytes`, or NULL; it stays here.
  Chunk* best_fit(uint64_t bytes) const {
    const auto found = all_.lower_bound(bytes);
    return found == all_.end() ? nullptr : found->chunk;
  }
  uint64_t largest() const { return all_.empty() ? 0 : all_.rbegin()->bytes; }

 private:
  FreeSet all_;
};

// Live chunks by address: a chained hash table that goes on working when it cannot grow.
class LiveChunks {
 public:
  LiveChunks() : buckets_(kFirstBuckets, nullptr) {}

  void insert(Chunk* chunk);
  Chunk* find(uintptr_t address) const;
  Chunk* remove(uintptr_t address);
  size_t count() const { return count_; }

 private:
  static constexpr size_t kFirstBuckets = 256;  // a power of two
  static size_t bucket_of(uintptr_t address, size_t buckets);
  void grow() noexcept;

  std::vector<Chunk*> buckets_;
  size_t count_ = 0;
};

// Owns all chunks. Ones that are given back serve again.
class ChunkPool {
 public:
  // Makes sure that take() has one. Throws std::bad_alloc, with nothing changed.
  void reserve() {
    if (spare_ == nullptr) add();
  }
  Chunk* take();
  void give(Chunk* chunk);

 private:
  void add();

  std::deque<Chunk> chunks_;
  FreeSet maker_;  // makes nodes; empty between calls
  Chunk* spare_ = nullptr;
};

}  // namespace mtf
