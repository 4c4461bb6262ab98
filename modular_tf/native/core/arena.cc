// The arena: which chunks there are is known beside the memory, which is never touched.
#include "arena.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdarg>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <new>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fork_lock.h"
#include "guard.h"

using mtf::LockGuard;
using mtf::UniqueLock;
using mtf::drop;
using mtf::fork_generation;
using mtf::guarded;
using mtf::make_closed_error;
using mtf::make_error;
using mtf::make_rule_error;

namespace {

// -- the chunks that regions are cut into: free ones by size, live ones by address ------------------------

constexpr uint64_t kChunkUnit = 256;  // sizes and addresses are multiples of it

struct Chunk;

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

  void insert(Chunk* chunk) {
    if (count_ == buckets_.size()) grow();
    put(buckets_, chunk);
    ++count_;
  }

  // NULL where there is none.
  Chunk* find(uintptr_t address) { return *link_to(address); }

  Chunk* remove(uintptr_t address) {
    Chunk** const link = link_to(address);
    Chunk* chunk = *link;
    if (chunk == nullptr) return nullptr;
    *link = chunk->link;
    --count_;
    return chunk;
  }

  size_t count() const { return count_; }

 private:
  static constexpr size_t kFirstBuckets = 256;  // a power of two

  static Chunk*& bucket_of(std::vector<Chunk*>& buckets, uintptr_t address) {
    const uint64_t mixed = address / kChunkUnit * UINT64_C(0x9E3779B97F4A7C15);
    return buckets[(mixed >> 32) & (buckets.size() - 1)];
  }

  static void put(std::vector<Chunk*>& buckets, Chunk* chunk) {
    Chunk*& head = bucket_of(buckets, chunk->address);
    chunk->link = std::exchange(head, chunk);
  }

  Chunk** link_to(uintptr_t address) {
    Chunk** link = &bucket_of(buckets_, address);
    while (*link != nullptr && (*link)->address != address) link = &(*link)->link;
    return link;
  }

  void grow() noexcept {
    std::vector<Chunk*> larger;
    try {
      larger.resize(buckets_.size() * 2, nullptr);
    } catch (const std::bad_alloc&) {
      return;  // longer chains, until there is memory again
    }
    for (Chunk* chunk : buckets_) {
      while (chunk != nullptr) put(larger, std::exchange(chunk, chunk->link));
    }
    buckets_.swap(larger);
  }

  std::vector<Chunk*> buckets_;
  size_t count_ = 0;
};

// Owns all chunks. Ones that are given back serve again.
class ChunkPool {
 public:
  // Makes sure that take() has one. Throws std::bad_alloc, with nothing changed.
  void reserve() {
    if (spare_ != nullptr) return;
    Chunk* chunk = &chunks_.emplace_back();
    try {
      chunk->node = maker_.extract(maker_.insert(FreeEntry{0, 0, chunk}).first);
    } catch (...) {
      chunks_.pop_back();
      throw;
    }
    give(chunk);
  }

  Chunk* take() { return std::exchange(spare_, spare_->link); }

  void give(Chunk* chunk) {
    chunk->requested = 0;
    chunk->link = std::exchange(spare_, chunk);
  }

 private:
  std::deque<Chunk> chunks_;
  FreeSet maker_;  // makes nodes; empty between calls
  Chunk* spare_ = nullptr;
};

// One piece of memory from the source. Its chunks, from `first` on, cover it without gaps.
struct Region {
  uintptr_t given = 0;  // as the source gave it, and as it goes back
  uint64_t given_bytes = 0;
  uintptr_t start = 0;  // what the arena uses: aligned, in whole units
  uint64_t bytes = 0;
  Chunk* first = nullptr;

  bool is_unused() const { return first->is_free() && first->next == nullptr; }
};

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

// -- text for people --------------------------------------------------------------------------------------

constexpr size_t kRegionsShown = 24;
constexpr int kBins = 21;  // the last one has everything from 256 MiB

// The bin for chunks of a size: 256 B, 512 B, 1 KiB, ... 256 MiB.
int bin_of(uint64_t bytes) {
  const int log = 63 - __builtin_clzll(std::max(bytes, kChunkUnit) / kChunkUnit);
  return std::min(log, kBins - 1);
}

void add(std::string* text, const char* format, ...) __attribute__((format(printf, 2, 3)));

void add(std::string* text, const char* format, ...) {
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  *text += line;
}

// "8.0 MiB (8388608 B)": to read, and to compare.
std::string size_text(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
  std::string text;
  if (bytes < 1024) {
    add(&text, "%" PRIu64 " B", bytes);
    return text;
  }
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); ++unit) value /= 1024;
  add(&text, "%.1f %s (%" PRIu64 " B)", value, kUnits[unit], bytes);
  return text;
}

std::string size_text(int64_t bytes) { return size_text(static_cast<uint64_t>(bytes)); }

// Chunks of one kind: how many, and how large together.
struct Tally {
  uint64_t chunks = 0;
  uint64_t bytes = 0;

  void count(const Chunk* chunk) {
    ++chunks;
    bytes += chunk->bytes;
  }
};

struct Use {
  Tally live;
  Tally free;

  void count(const Chunk* chunk) { (chunk->is_free() ? free : live).count(chunk); }
  std::string text() const {
    std::string text;
    add(&text, "%" PRIu64 " in use, %s; %" PRIu64 " free, %s", live.chunks,
        size_text(live.bytes).c_str(), free.chunks, size_text(free.bytes).c_str());
    return text;
  }
};

Use use_of(const Region& region) {
  Use use;
  for (const Chunk* chunk = region.first; chunk != nullptr; chunk = chunk->next) use.count(chunk);
  return use;
}

}  // namespace

// [any thread] Functions may throw std::bad_alloc; the arena is then as it was before.
struct mtf_arena {
  explicit mtf_arena(const mtf_arena_options& options);
  ~mtf_arena();
  mtf_arena(const mtf_arena&) = delete;
  mtf_arena& operator=(const mtf_arena&) = delete;

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

  std::atomic<int64_t> references{1};

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

  mtf::Lock mutex_;  // of what follows
  mtf::Signal changed_;
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

// One thread's turn to ask for regions.
class mtf_arena::Growth {
 public:
  explicit Growth(mtf_arena* arena) : arena_(arena) { arena_->growing_ = fork_generation(); }
  ~Growth() {
    arena_->growing_.reset();
    arena_->changed_.notify_all();
  }
  Growth(const Growth&) = delete;
  Growth& operator=(const Growth&) = delete;

 private:
  mtf_arena* arena_;
};

mtf_arena::mtf_arena(const mtf_arena_options& options)
    : name_(options.name != nullptr ? options.name : "arena"),
      options_(options),
      next_region_(kFirstRegion) {
  const uint64_t limit = std::min(options.bytes_limit, kLargestLimit);
  stats_.has_bytes_limit = options.bytes_limit != UINT64_MAX;
  stats_.bytes_limit = static_cast<int64_t>(limit);
  if (!options.growth) next_region_ = std::max(round_down(limit), kChunkUnit);
  if (options_.retain != nullptr) options_.retain(options_.context);
}

mtf_arena::~mtf_arena() {
  {
    UniqueLock lock(mutex_);
    mtf_error_free(drop_all(lock));
  }
  if (options_.release == nullptr) return;
  drop(guarded({nullptr, "release of a source of regions"}, [&](TF_Status*) { options_.release(options_.context); }));
}

uintptr_t mtf_arena::take(uint64_t bytes) {
  const LockGuard lock(mutex_);
  return closed_ || mutex_.is_abandoned() ? 0 : find(bytes);
}

uintptr_t mtf_arena::find(uint64_t bytes) {
  if (bytes == 0 || bytes > kLargestLimit) return 0;
  const uint64_t rounded = round_up(bytes);
  Chunk* chunk = free_.best_fit(rounded);
  if (chunk == nullptr) return 0;
  pool_.reserve();
  return occupy(chunk, bytes, rounded);
}

// Needs a chunk in reserve; from here on nothing can fail.
uintptr_t mtf_arena::occupy(Chunk* chunk, uint64_t requested, uint64_t rounded) {
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

void mtf_arena::split(Chunk* chunk, uint64_t bytes) {
  Chunk* rest = pool_.take();
  rest->address = chunk->address + bytes;
  rest->bytes = chunk->bytes - bytes;
  rest->previous = chunk;
  rest->next = chunk->next;
  if (rest->next != nullptr) rest->next->previous = rest;
  chunk->next = rest;
  chunk->bytes = bytes;
  free_.insert(rest);
}

mtf_error* mtf_arena::allocate(uint64_t bytes, uintptr_t* address) {
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

mtf_error* mtf_arena::grow(UniqueLock& lock, uint64_t bytes, uintptr_t* address) {
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

mtf_error* mtf_arena::free(uintptr_t address) {
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

Chunk* mtf_arena::coalesce(Chunk* chunk) {
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

void mtf_arena::absorb_next(Chunk* chunk) {
  Chunk* next = chunk->next;
  chunk->bytes += next->bytes;
  chunk->next = next->next;
  if (chunk->next != nullptr) chunk->next->previous = chunk;
  pool_.give(next);
}

uint64_t mtf_arena::room() const {
  return round_down(static_cast<uint64_t>(stats_.bytes_limit - stats_.bytes_reserved));
}

// Adds a region with room for `rounded` bytes; false, perhaps with an error, when there is none.
bool mtf_arena::extend(UniqueLock& lock, uint64_t rounded, mtf_error** error) {
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
mtf_arena::Outcome mtf_arena::add_region(UniqueLock& lock, uint64_t bytes, uint64_t least,
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
mtf_arena::Outcome mtf_arena::judge(Region* region, uint64_t least, mtf_error** error) {
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

void* mtf_arena::ask_source(UniqueLock& lock, uint64_t bytes, mtf_error** error) {
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
std::unique_ptr<Region> mtf_arena::make_region() {
  auto region = std::make_unique<Region>();
  regions_.reserve(regions_.size() + 1);
  pool_.reserve();
  region->first = pool_.take();
  return region;
}

void mtf_arena::adopt(std::unique_ptr<Region> region) {
  Chunk* chunk = region->first;
  chunk->address = region->start;
  chunk->bytes = region->bytes;
  chunk->previous = chunk->next = nullptr;
  stats_.bytes_reserved += static_cast<int64_t>(region->given_bytes);
  stats_.peak_bytes_reserved = std::max(stats_.peak_bytes_reserved, stats_.bytes_reserved);
  regions_.push_back(std::move(region));
  free_.insert(chunk);
}

const Region* mtf_arena::overlapping(uintptr_t start, uint64_t bytes) const {
  for (const auto& region : regions_) {
    if (start < region->given + region->given_bytes && region->given < start + bytes) {
      return region.get();
    }
  }
  return nullptr;
}

// Gives all unused regions back, if that can make room; true when the source got some.
bool mtf_arena::collect_garbage(UniqueLock& lock, uint64_t rounded, mtf_error** error) {
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

mtf_error* mtf_arena::drop_all(UniqueLock& lock) {
  Regions dropped;
  dropped.swap(regions_);
  for (const auto& region : dropped) forget(*region);
  return give_all_back(lock, dropped);
}

// Forgets a region and all its chunks before its source gets it back.
void mtf_arena::forget(const Region& region) {
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
mtf_error* mtf_arena::give_all_back(UniqueLock& lock, const Regions& regions) {
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

mtf_error* mtf_arena::give_back(UniqueLock& lock, const Region& region) {
  const Unlocked unlocked(lock);
  return guarded({nullptr, "free of a source of regions"}, [&](TF_Status*) {
    options_.free(options_.context, reinterpret_cast<void*>(region.given), region.given_bytes);
  });
}

mtf_error* mtf_arena::close() {
  UniqueLock lock(mutex_);
  if (mutex_.is_abandoned()) return abandoned_error();
  closed_ = true;
  if (is_growing()) changed_.notify_all();
  return live_.count() == 0 ? drop_all(lock) : nullptr;
}

uint64_t mtf_arena::allocated_bytes(uintptr_t address) {
  const LockGuard lock(mutex_);
  if (mutex_.is_abandoned()) return 0;
  const Chunk* chunk = live_.find(address);
  return chunk == nullptr ? 0 : chunk->bytes;
}

mtf_allocator_stats mtf_arena::stats() {
  const LockGuard lock(mutex_);
  return mutex_.is_abandoned() ? mtf_allocator_stats{} : figures();
}

bool mtf_arena::is_abandoned() {
  const LockGuard lock(mutex_);
  return mutex_.is_abandoned();
}

mtf_allocator_stats mtf_arena::figures() const {
  mtf_allocator_stats stats = stats_;
  stats.num_live_allocs = static_cast<int64_t>(live_.count());
  stats.largest_free_block_bytes = static_cast<int64_t>(free_.largest());
  return stats;
}

std::string mtf_arena::picture() {
  const LockGuard lock(mutex_);
  return mutex_.is_abandoned() ? "" : draw();
}

std::string mtf_arena::draw() const {
  const mtf_allocator_stats now = figures();
  std::string text = "arena " + name_ + (closed_ ? " (closed)" : "") + ": " +
                     size_text(now.bytes_in_use) + " in use by " +
                     std::to_string(now.num_live_allocs) + " allocations, " +
                     size_text(now.bytes_reserved) + " reserved, limit " +
                     size_text(now.bytes_limit) + ", largest free block " +
                     size_text(now.largest_free_block_bytes) + ", peak " +
                     size_text(now.peak_bytes_in_use);
  draw_regions(&text);
  draw_bins(&text);
  return text;
}

void mtf_arena::draw_regions(std::string* text) const {
  const size_t shown = std::min(regions_.size(), kRegionsShown);
  for (size_t index = 0; index < shown; ++index) {
    const Region& region = *regions_[index];
    add(text, "\n  region 0x%" PRIxPTR ", %s: %s", region.start, size_text(region.bytes).c_str(),
        use_of(region).text().c_str());
  }
  if (shown < regions_.size()) add(text, "\n  and %zu more regions", regions_.size() - shown);
}

void mtf_arena::draw_bins(std::string* text) const {
  std::array<Use, kBins> bins;
  for (const auto& region : regions_) {
    for (const Chunk* chunk = region->first; chunk != nullptr; chunk = chunk->next) {
      bins[bin_of(chunk->bytes)].count(chunk);
    }
  }
  for (int bin = 0; bin < kBins; ++bin) {
    if (bins[bin].live.chunks + bins[bin].free.chunks == 0) continue;
    add(text, "\n  chunks from %s: %s", size_text(kChunkUnit << bin).c_str(),
        bins[bin].text().c_str());
  }
}

mtf_error* mtf_arena::closed_error() const {
  return make_closed_error(("the arena " + name_ + " is closed").c_str());
}

mtf_error* mtf_arena::abandoned_error() const {
  const std::string text = "another thread used the arena " + name_ +
                           " when this process was forked; make a new arena in this process";
  return make_error(TF_FAILED_PRECONDITION, text.c_str());
}

mtf_error* mtf_arena::given_twice(uintptr_t address) const {
  std::string text;
  add(&text, "the source of the arena %.200s returned memory that it had given out before,"
             " at 0x%" PRIxPTR " (rule SE-135); report it to its authors",
      name_.c_str(), address);
  return make_rule_error(135, text.c_str());
}

mtf_error* mtf_arena::out_of_memory(uint64_t bytes) const {
  const uint64_t limit = static_cast<uint64_t>(stats_.bytes_limit);
  const uint64_t unused = static_cast<uint64_t>(stats_.bytes_reserved - stats_.bytes_in_use);
  std::string text = "out of memory: " + size_text(bytes) + " asked of the arena " + name_;
  if (bytes > limit) {
    text += ", more than its whole limit; raise the limit or ask for less";
  } else if (bytes <= unused) {
    text += "; enough is free, but in pieces: free what lies between them, or ask for less at once";
  } else {
    text += "; free something, raise the limit, or ask for less";
  }
  return make_error(TF_RESOURCE_EXHAUSTED, (text + "\n" + draw()).c_str());
}

mtf_error* mtf_arena::not_live(uintptr_t address) const {
  std::string text;
  add(&text, "0x%" PRIxPTR " is no live allocation of the arena %.200s: ", address, name_.c_str());
  const Region* region = overlapping(address, 1);
  if (region == nullptr) {
    return make_error(TF_INVALID_ARGUMENT, (text + "it lies in none of its regions").c_str());
  }
  const Chunk* chunk = region->first;
  while (chunk->next != nullptr && chunk->next->address <= address) chunk = chunk->next;
  if (!chunk->is_free()) {
    add(&text, "it lies inside the one of %" PRIu64 " B at 0x%" PRIxPTR, chunk->requested,
        chunk->address);
    return make_error(TF_INVALID_ARGUMENT, text.c_str());
  }
  return make_error(TF_FAILED_PRECONDITION,
                    (text + "the memory there is free; was it freed before?").c_str());
}

namespace {

mtf_error* no_host_memory() {
  return make_error(TF_RESOURCE_EXHAUSTED, "the host has no memory for the tables of an arena");
}

// Runs `call`, which may find that the host has no memory.
template <class Call>
mtf_error* with_tables(Call&& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return no_host_memory();
  }
}

}  // namespace

extern "C" {

mtf_error* mtf_arena_new(const mtf_arena_options* options, mtf_arena** arena) {
  if (options->allocate == nullptr || options->free == nullptr) {
    return make_error(TF_INVALID_ARGUMENT, "an arena needs a source that can allocate and free");
  }
  return with_tables([&]() -> mtf_error* {
    *arena = new mtf_arena(*options);
    return nullptr;
  });
}

uintptr_t mtf_arena_take(mtf_arena* arena, uint64_t bytes) {
  try {
    return arena->take(bytes);
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

mtf_error* mtf_arena_allocate(mtf_arena* arena, uint64_t bytes, uintptr_t* address) {
  return with_tables([&] { return arena->allocate(bytes, address); });
}

mtf_error* mtf_arena_free(mtf_arena* arena, uintptr_t address) {
  return with_tables([&] { return arena->free(address); });
}

uint64_t mtf_arena_allocated_bytes(mtf_arena* arena, uintptr_t address) {
  return arena->allocated_bytes(address);
}

void mtf_arena_get_stats(mtf_arena* arena, mtf_allocator_stats* stats) {
  *stats = arena->stats();
}

char* mtf_arena_picture(mtf_arena* arena) {
  try {
    return strdup(arena->picture().c_str());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

mtf_error* mtf_arena_close(mtf_arena* arena) {
  return with_tables([&] { return arena->close(); });
}

void mtf_arena_retain(mtf_arena* arena) { ++arena->references; }

void mtf_arena_release(mtf_arena* arena) {
  if (--arena->references == 0 && !arena->is_abandoned()) delete arena;
}

}  // extern "C"
