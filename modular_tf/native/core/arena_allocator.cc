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

// Lets go of a lock while it lives.
class Unlocked {
 public:
  explicit Unlocked(UniqueLock& lock) : lock_(lock) { lock_.unlock(); }
  ~Unlocked() { lock_.lock(); }
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  UniqueLock& lock_;
};

// The next size to try after the source refused one: nine tenths.
uint64_t back_off(uint64_t bytes) { return round_up((bytes * 9 + 9) / 10); }

}  // namespace

// One thread's turn to ask for regions.
class Arena::Growth {
 public:
  explicit Growth(Arena* arena) : arena_(arena) { arena_->growing_ = fork_generation(); }
  ~Growth() {
    arena_->growing_.reset();
    arena_->changed_.notify_all();
  }
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

 private:
  Arena* arena_;
};

Arena::Arena(const mtf_arena_options& options)
    : name_(options.name != nullptr ? options.name : "arena"),
      options_(options),
      next_region_(kFirstRegion) {
  const uint64_t limit = std::min(options.bytes_limit, kLargestLimit);
  stats_.has_bytes_limit = options.bytes_limit != UINT64_MAX;
  stats_.bytes_limit = static_cast<int64_t>(limit);
  if (!options.growth) next_region_ = std::max(round_down(limit), kChunkUnit);
  if (options_.retain != nullptr) options_.retain(options_.context);
}

Arena::~Arena() {
  {
    UniqueLock lock(mutex_);
    mtf_error_free(drop_all(lock));
  }
  if (options_.release == nullptr) return;
  drop(guarded({nullptr, "release of a source of regions"}, [&](TF_Status*) { options_.release(options_.context); }));
}

uintptr_t Arena::take(uint64_t bytes) {
  const LockGuard lock(mutex_);
  return closed_ || mutex_.is_abandoned() ? 0 : find(bytes);
}

uintptr_t Arena::find(uint64_t bytes) {
  if (bytes == 0 || bytes > kLargestLimit) return 0;
  const uint64_t rounded = round_up(bytes);
  Chunk* chunk = free_.best_fit(rounded);
  if (chunk == nullptr) return 0;
  pool_.reserve();
  return occupy(chunk, bytes, rounded);
}

// Needs a chunk in reserve; from here on nothing can fail.
uintptr_t Arena::occupy(Chunk* chunk, uint64_t requested, uint64_t rounded) {
  free_.remove(chunk);
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
  free_.insert(rest);
}

mtf_error* Arena::allocate(uint64_t bytes, uintptr_t* address) {
  *address = 0;
  UniqueLock lock(mutex_);
  if (mutex_.is_abandoned()) return abandoned_error();
  if (closed_) return closed_error();
  if (bytes == 0) return nullptr;
  if (bytes > static_cast<uint64_t>(stats_.bytes_limit)) return out_of_memory(bytes);
  // A thread that asks the source brings a region, and meanwhile others may free enough.
  changed_.wait(lock, [&] { return closed_ || (*address = find(bytes)) != 0 || !is_growing(); });
  if (*address != 0) return nullptr;
  return closed_ ? closed_error() : grow(lock, bytes, address);
}

mtf_error* Arena::grow(UniqueLock& lock, uint64_t bytes, uintptr_t* address) {
  const Growth growth(this);
  const uint64_t rounded = round_up(bytes);
  mtf_error* error = nullptr;
  if (!extend(lock, rounded, &error) && error == nullptr && options_.garbage_collection) {
    if (collect_garbage(lock, rounded, &error)) extend(lock, rounded, &error);
  }
  if (error != nullptr) return error;
  if (closed_) return closed_error();
  *address = find(bytes);
  return *address != 0 ? nullptr : out_of_memory(bytes);
}

mtf_error* Arena::free(uintptr_t address) {
  if (address == 0) return nullptr;
  UniqueLock lock(mutex_);
  if (mutex_.is_abandoned()) return abandoned_error();
  Chunk* chunk = live_.remove(address);
  if (chunk == nullptr) return not_live(address);
  stats_.bytes_in_use -= static_cast<int64_t>(chunk->bytes);
  chunk->requested = 0;
  free_.insert(coalesce(chunk));
  if (is_growing()) changed_.notify_all();
  return closed_ && live_.count() == 0 ? drop_all(lock) : nullptr;
}

Chunk* Arena::coalesce(Chunk* chunk) {
  if (chunk->next != nullptr && chunk->next->is_free()) {
    free_.remove(chunk->next);
    absorb_next(chunk);
  }
  Chunk* previous = chunk->previous;
  if (previous == nullptr || !previous->is_free()) return chunk;
  free_.remove(previous);
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
bool Arena::extend(UniqueLock& lock, uint64_t rounded, mtf_error** error) {
  uint64_t size = next_region_;
  while (size < rounded) size *= 2;
  uint64_t asked = std::min(std::max(size, rounded + padding_), room());
  while (asked >= rounded + padding_ && !closed_) {
    const uint64_t least = rounded + padding_;
    switch (add_region(lock, asked, rounded, error)) {
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
Arena::Outcome Arena::add_region(UniqueLock& lock, uint64_t bytes, uint64_t least,
                                 mtf_error** error) {
  std::unique_ptr<Region> region = make_region();
  region->given_bytes = bytes;
  region->given = reinterpret_cast<uintptr_t>(ask_source(lock, bytes, error));
  const Outcome outcome = *error != nullptr ? Outcome::kFailed : judge(region.get(), least, error);
  if (outcome == Outcome::kAdded) {
    adopt(std::move(region));
    return outcome;
  }
  pool_.give(region->first);
  if (region->given != 0 && *error == nullptr) *error = give_back(lock, *region);
  return *error != nullptr ? Outcome::kFailed : outcome;
}

// Sets what of a region can be used.
Arena::Outcome Arena::judge(Region* region, uint64_t least, mtf_error** error) {
  if (region->given == 0) return Outcome::kRefused;
  if (region->given > UINTPTR_MAX - region->given_bytes ||
      overlapping(region->given, region->given_bytes) != nullptr) {
    *error = given_twice(region->given);  // it is not ours to give back
    return Outcome::kFailed;
  }
  region->start = round_up(region->given);
  region->bytes = round_down(region->given + region->given_bytes - region->start);
  if (region->start != region->given) padding_ = kChunkUnit;
  if (closed_) return Outcome::kFailed;  // meanwhile
  return region->bytes < least ? Outcome::kUnaligned : Outcome::kAdded;
}

void* Arena::ask_source(UniqueLock& lock, uint64_t bytes, mtf_error** error) {
  void* given = nullptr;
  const Unlocked unlocked(lock);
  mtf_error_free(mtf_take_error());  // of an earlier call
  *error = guarded({nullptr, "allocate of a source of regions"}, [&](TF_Status*) {
    given = options_.allocate(options_.context, bytes);
  });
  if (*error == nullptr && given == nullptr) *error = mtf_take_error();
  return given;
}

// All that a region needs to be adopted, so that this cannot fail once the source has given it.
std::unique_ptr<Region> Arena::make_region() {
  auto region = std::make_unique<Region>();
  regions_.reserve(regions_.size() + 1);
  pool_.reserve();
  region->first = pool_.take();
  return region;
}

void Arena::adopt(std::unique_ptr<Region> region) {
  Chunk* chunk = region->first;
  chunk->address = region->start;
  chunk->bytes = region->bytes;
  chunk->region = region.get();
  chunk->previous = chunk->next = nullptr;
  stats_.bytes_reserved += static_cast<int64_t>(region->given_bytes);
  stats_.peak_bytes_reserved = std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
  regions_.push_back(std::move(region));
  free_.insert(chunk);
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
bool Arena::collect_garbage(UniqueLock& lock, uint64_t rounded, mtf_error** error) {
  uint64_t unused = 0;
  size_t count = 0;
  for (const auto& region : regions_) {
    if (!region->is_unused()) continue;
    unused += region->given_bytes;
    ++count;
  }
  if (unused == 0 || unused + room() < rounded) return false;
  Regions collected;
  collected.reserve(count);
  for (size_t index = regions_.size(); index-- > 0;) {
    if (!regions_[index]->is_unused()) continue;
    forget(*regions_[index]);
    collected.push_back(std::move(regions_[index]));
    regions_.erase(regions_.begin() + static_cast<std::ptrdiff_t>(index));
  }
  *error = give_all_back(lock, collected);
  return *error == nullptr;
}

mtf_error* Arena::drop_all(UniqueLock& lock) {
  Regions dropped;
  dropped.swap(regions_);
  for (const auto& region : dropped) forget(*region);
  return give_all_back(lock, dropped);
}

// Forgets a region and all its chunks before its source gets it back.
void Arena::forget(const Region& region) {
  for (Chunk* chunk = region.first; chunk != nullptr;) {
    Chunk* next = chunk->next;
    if (chunk->is_free()) {
      free_.remove(chunk);
    } else {
      live_.remove(chunk->address);
      stats_.bytes_in_use -= static_cast<int64_t>(chunk->bytes);
    }
    pool_.give(chunk);
    chunk = next;
  }
  stats_.bytes_reserved -= static_cast<int64_t>(region.given_bytes);
}

// Returns the first failure; all regions go back nevertheless.
mtf_error* Arena::give_all_back(UniqueLock& lock, const Regions& regions) {
  mtf_error* first = nullptr;
  for (const auto& region : regions) {
    mtf_error* error = give_back(lock, *region);
    if (first == nullptr) {
      first = error;
    } else {
      mtf_error_free(error);
    }
  }
  return first;
}

mtf_error* Arena::give_back(UniqueLock& lock, const Region& region) {
  const Unlocked unlocked(lock);
  return guarded({nullptr, "free of a source of regions"}, [&](TF_Status*) {
    options_.free(options_.context, reinterpret_cast<void*>(region.given), region.given_bytes);
  });
}

mtf_error* Arena::close() {
  UniqueLock lock(mutex_);
  if (mutex_.is_abandoned()) return abandoned_error();
  closed_ = true;
  if (is_growing()) changed_.notify_all();
  return live_.count() == 0 ? drop_all(lock) : nullptr;
}

uint64_t Arena::allocated_bytes(uintptr_t address) {
  const LockGuard lock(mutex_);
  if (mutex_.is_abandoned()) return 0;
  const Chunk* chunk = live_.find(address);
  return chunk == nullptr ? 0 : chunk->bytes;
}

mtf_allocator_stats Arena::stats() {
  const LockGuard lock(mutex_);
  return mutex_.is_abandoned() ? mtf_allocator_stats{} : figures();
}

bool Arena::is_abandoned() {
  const LockGuard lock(mutex_);
  return mutex_.is_abandoned();
}

mtf_allocator_stats Arena::figures() const {
  mtf_allocator_stats stats = stats_;
  stats.num_live_allocs = static_cast<int64_t>(live_.count());
  stats.largest_free_block_bytes = static_cast<int64_t>(free_.largest());
  return stats;
}

}  // namespace mtf
