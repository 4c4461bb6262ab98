#include "arena_chunks.h"

#include <new>

namespace mtf {

size_t LiveChunks::bucket_of(uintptr_t address, size_t buckets) {
  const uint64_t mixed = address / kChunkUnit * UINT64_C(0x9E3779B97F4A7C15);
  return (mixed >> 32) & (buckets - 1);
}

void LiveChunks::insert(Chunk* chunk) {
  if (count_ == buckets_.size()) grow();
  Chunk*& head = buckets_[bucket_of(chunk->address, buckets_.size())];
  chunk->link = head;
  head = chunk;
  ++count_;
}

Chunk* LiveChunks::find(uintptr_t address) const {
  Chunk* chunk = buckets_[bucket_of(address, buckets_.size())];
  while (chunk != nullptr && chunk->address != address) chunk = chunk->link;
  return chunk;
}

Chunk* LiveChunks::remove(uintptr_t address) {
  Chunk** link = &buckets_[bucket_of(address, buckets_.size())];
  while (*link != nullptr && (*link)->address != address) link = &(*link)->link;
  Chunk* chunk = *link;
  if (chunk == nullptr) return nullptr;
  *link = chunk->link;
  --count_;
  return chunk;
}

void LiveChunks::grow() noexcept {
  std::vector<Chunk*> larger;
  try {
    larger.resize(buckets_.size() * 2, nullptr);
  } catch (const std::bad_alloc&) {
    return;  // longer chains, until there is memory again
  }
  for (Chunk* chunk : buckets_) {
    while (chunk != nullptr) {
      Chunk* following = chunk->link;
      Chunk*& head = larger[bucket_of(chunk->address, larger.size())];
      chunk->link = head;
      head = chunk;
      chunk = following;
    }
  }
  buckets_.swap(larger);
}

Chunk* ChunkPool::take() {
  Chunk* chunk = spare_;
  spare_ = chunk->link;
  return chunk;
}

void ChunkPool::give(Chunk* chunk) {
  chunk->requested = 0;
  chunk->link = spare_;
  spare_ = chunk;
}

void ChunkPool::add() {
  chunks_.emplace_back();
  Chunk* chunk = &chunks_.back();
  try {
    chunk->node = maker_.extract(maker_.insert(FreeEntry{0, 0, chunk}).first);
  } catch (...) {
    chunks_.pop_back();
    throw;
  }
  give(chunk);
}

}  // namespace mtf
