#include "arena_allocator.h"

#include <algorithm>
#include <utility>

#include "guard.h"

namespace mtf {
namespace {

constexpr uint64_t kFirstRegion = uint64_t{2} << 20;
// A chunk with more than this left over is split even where less than half would be left.
constexpr uint64_t kLargestRest = uint64_t{128} << 20;
// Above it sizes could no longer be rounded, summed or reported as int64_t.
constexpr uint64_t kLargestLimit = uint64_t{1} << 62;

uint64_t round_down(uint64_t bytes) { return bytes / kChunkUnit * kChunkUnit; }
uint64_t round_up(uint64_t bytes) { return round_down(bytes + kChunkUnit - 1); }

// The next size to try after the source refused one: nine tenths.
uint64_t back_off(uint64_t bytes) { return round_up((bytes * 9 + 9) / 10); }

}  // namespace

Arena::Arena(const mtf_arena_options& options)
    : name_(options.name != nullptr ? options.name : "arena"),
      options_(options),
      next_region_(kFirstRegion) {
  const uint64_t limit = std::min(options.bytes_limit, kLargestLimit);
  stats_.bytes_limit = static_cast<int64_t>(limit);
  if (!options.growth) next_region_ = std::max(round_down(limit), kChunkUnit);
}

Arena::~Arena() {
  mtf_error_free(drop_all());
  if (options_.end == nullptr) return;
  mtf_error_free(guarded([&](TF_Status*) { options_.end(options_.context); }));
}

uintptr_t Arena::take(uint64_t bytes) {
  if (closed_ || bytes == 0 || bytes > kLargestLimit) return 0;
  const uint64_t rounded = round_up(bytes);
  Chunk* chunk = bins_.best_fit(rounded);
  if (chunk == nullptr) return 0;
  pool_.reserve();
  return occupy(chunk, bytes, rounded);
}

// Needs a chunk in reserve; from here on nothing can fail.
uintptr_t Arena::occupy(Chunk* chunk, uint64_t requested, uint64_t rounded) {
  bins_.remove(chunk);
  if (chunk->bytes >= 2 * rounded || chunk->bytes - rounded >= kLargestRest) split(chunk, rounded);
  chunk->requested = requested;
  live_.insert(chunk);
  const auto bytes = static_cast<int64_t>(chunk->bytes);
  ++stats_.num_allocs;
  stats_.bytes_in_use += bytes;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  stats_.largest_alloc_size = std::max(stats_.largest_alloc_size, bytes);
  return chunk->address;
}

void Arena::split(Chunk* chunk, uint64_t bytes) {
  Chunk* rest = pool_.take();
  rest->address = chunk->address + bytes;
  rest->bytes = chunk->bytes - bytes;
  rest->region = chunk->region;
  rest->previous = chunk;
  rest->next = chunk->next;
  if (rest->next != nullptr) rest->next->previous = rest;
  chunk->next = rest;
  chunk->bytes = bytes;
  bins_.insert(rest);
}

mtf_error* Arena::allocate(uint64_t bytes, uintptr_t* address) {
  *address = 0;
  if (closed_) {
    mtf_error* error = make_error(9, ("the arena " + name_ + " is closed").c_str());
    error->closed = 1;
    return error;
  }
  if (bytes == 0) return nullptr;
  if (bytes > static_cast<uint64_t>(stats_.bytes_limit)) return out_of_memory(bytes);
  if ((*address = take(bytes)) != 0) return nullptr;
  const uint64_t rounded = round_up(bytes);
  mtf_error* error = nullptr;
  bool extended = extend(rounded, &error);
  if (!extended && error == nullptr && options_.garbage_collection) {
    extended = collect_garbage(rounded, &error) && extend(rounded, &error);
  }
  if (error != nullptr) return error;
  if (extended) *address = take(bytes);
  return *address != 0 ? nullptr : out_of_memory(bytes);
}

mtf_error* Arena::free(uintptr_t address) {
  if (address == 0) return nullptr;
  Chunk* chunk = live_.remove(address);
  if (chunk == nullptr) return not_live(address);
  stats_.bytes_in_use -= static_cast<int64_t>(chunk->bytes);
  chunk->requested = 0;
  bins_.insert(coalesce(chunk));
  return closed_ && live_.count() == 0 ? drop_all() : nullptr;
}

Chunk* Arena::coalesce(Chunk* chunk) {
  if (chunk->next != nullptr && chunk->next->is_free()) {
    bins_.remove(chunk->next);
    absorb_next(chunk);
  }
  Chunk* previous = chunk->previous;
  if (previous == nullptr || !previous->is_free()) return chunk;
  bins_.remove(previous);
  absorb_next(previous);
  return previous;
}

void Arena::absorb_next(Chunk* chunk) {
  Chunk* next = chunk->next;
  chunk->bytes += next->bytes;
  chunk->next = next->next;
  if (chunk->next != nullptr) chunk->next->previous = chunk;
  pool_.give(next);
}

uint64_t Arena::room() const {
  return round_down(static_cast<uint64_t>(stats_.bytes_limit - stats_.bytes_reserved));
}

// Adds a region with room for `rounded` bytes; false, perhaps with an error, when there is none.
bool Arena::extend(uint64_t rounded, mtf_error** error) {
  uint64_t size = next_region_;
  while (size < rounded) size *= 2;
  uint64_t asked = std::min(std::max(size, rounded + padding_), room());
  while (asked >= rounded + padding_) {
    const uint64_t least = rounded + padding_;
    switch (add_region(asked, rounded, error)) {
      case Outcome::kAdded:
        next_region_ = size > next_region_ ? size : std::min(size * 2, kLargestLimit);
        return true;
      case Outcome::kRefused:
        if (asked == least) return false;
        asked = std::max(std::min(back_off(asked), asked - kChunkUnit), least);
        break;
      case Outcome::kUnaligned:  // there is padding from now on
        asked = std::min(std::max(asked, rounded + padding_), room());
        break;
      case Outcome::kFailed:
        return false;
    }
  }
  return false;
}

// Asks for `bytes` and keeps what comes if `least` bytes of it can be used.
Arena::Outcome Arena::add_region(uint64_t bytes, uint64_t least, mtf_error** error) {
  auto region = std::make_unique<Region>();
  regions_.reserve(regions_.size() + 1);
  pool_.reserve();
  void* given = ask_source(bytes, error);
  if (*error != nullptr) return Outcome::kFailed;
  if (given == nullptr) return Outcome::kRefused;
  region->given = reinterpret_cast<uintptr_t>(given);
  region->given_bytes = bytes;
  if (region->given > UINTPTR_MAX - bytes || overlapping(region->given, bytes) != nullptr) {
    *error = make_error(13, ("the source of the arena " + name_ +
                             " returned memory that it had given out before").c_str());
    return Outcome::kFailed;  // it is not ours to give back
  }
  region->start = round_up(region->given);
  region->bytes = round_down(region->given + bytes - region->start);
  if (region->start != region->given) padding_ = kChunkUnit;
  if (region->bytes < least) {
    *error = give_to_source(region->given, bytes);
    return *error != nullptr ? Outcome::kFailed : Outcome::kUnaligned;
  }
  adopt(std::move(region));
  return Outcome::kAdded;
}

void* Arena::ask_source(uint64_t bytes, mtf_error** error) const {
  void* given = nullptr;
  mtf_error_free(mtf_take_error());  // of an earlier call
  *error = guarded([&](TF_Status*) { given = options_.allocate(options_.context, bytes); });
  if (*error == nullptr && given == nullptr) *error = mtf_take_error();
  return given;
}

void Arena::adopt(std::unique_ptr<Region> region) {
  Chunk* chunk = pool_.take();
  chunk->address = region->start;
  chunk->bytes = region->bytes;
  chunk->region = region.get();
  chunk->previous = chunk->next = nullptr;
  region->first = chunk;
  stats_.bytes_reserved += static_cast<int64_t>(region->given_bytes);
  stats_.peak_bytes_reserved = std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
  regions_.push_back(std::move(region));
  bins_.insert(chunk);
}

const Region* Arena::overlapping(uintptr_t start, uint64_t bytes) const {
  for (const auto& region : regions_) {
    if (start < region->given + region->given_bytes && region->given < start + bytes) {
      return region.get();
    }
  }
  return nullptr;
}

// Gives all unused regions back, if that can make room; true when the source got some.
bool Arena::collect_garbage(uint64_t rounded, mtf_error** error) {
  uint64_t unused = 0;
  for (const auto& region : regions_) {
    if (region->is_unused()) unused += region->given_bytes;
  }
  if (unused == 0 || unused + room() < rounded) return false;
  for (size_t index = regions_.size(); index-- > 0 && *error == nullptr;) {
    if (regions_[index]->is_unused()) *error = drop_region(index);
  }
  return *error == nullptr;
}

// Forgets a region and all its chunks before its source gets it back.
mtf_error* Arena::drop_region(size_t index) {
  const std::unique_ptr<Region> region = std::move(regions_[index]);
  regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(index));
  for (Chunk* chunk = region->first; chunk != nullptr;) {
    Chunk* next = chunk->next;
    if (chunk->is_free()) {
      bins_.remove(chunk);
    } else {
      live_.remove(chunk->address);
      stats_.bytes_in_use -= static_cast<int64_t>(chunk->bytes);
    }
    pool_.give(chunk);
    chunk = next;
  }
  stats_.bytes_reserved -= static_cast<int64_t>(region->given_bytes);
  return give_to_source(region->given, region->given_bytes);
}

mtf_error* Arena::drop_all() {
  mtf_error* first = nullptr;
  while (!regions_.empty()) {
    mtf_error* error = drop_region(regions_.size() - 1);
    if (first == nullptr) {
      first = error;
    } else {
      mtf_error_free(error);
    }
  }
  return first;
}

mtf_error* Arena::give_to_source(uintptr_t address, uint64_t bytes) {
  return guarded([&](TF_Status*) {
    options_.free(options_.context, reinterpret_cast<void*>(address), bytes);
  });
}

mtf_error* Arena::close() {
  closed_ = true;
  return live_.count() == 0 ? drop_all() : nullptr;
}

uint64_t Arena::allocated_bytes(uintptr_t address) const {
  const Chunk* chunk = live_.find(address);
  return chunk == nullptr ? 0 : chunk->bytes;
}

mtf_arena_stats Arena::stats() const {
  mtf_arena_stats stats = stats_;
  stats.num_live_allocs = static_cast<int64_t>(live_.count());
  stats.largest_free_block_bytes = static_cast<int64_t>(bins_.largest());
  return stats;
}

}  // namespace mtf
