// What the arena tells people: its picture, and what was wrong with a request.
#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>
#include <string>

#include "arena_allocator.h"
#include "guard.h"

namespace mtf {
namespace {

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

std::string Arena::picture() {
  const LockGuard lock(mutex_);
  return mutex_.is_abandoned() ? "" : draw();
}

std::string Arena::draw() const {
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

void Arena::draw_regions(std::string* text) const {
  const size_t shown = std::min(regions_.size(), kRegionsShown);
  for (size_t index = 0; index < shown; ++index) {
    const Region& region = *regions_[index];
    add(text, "\n  region 0x%" PRIxPTR ", %s: %s", region.start, size_text(region.bytes).c_str(),
        use_of(region).text().c_str());
  }
  if (shown < regions_.size()) add(text, "\n  and %zu more regions", regions_.size() - shown);
}

void Arena::draw_bins(std::string* text) const {
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

mtf_error* Arena::closed_error() const {
  return make_closed_error(("the arena " + name_ + " is closed").c_str());
}

mtf_error* Arena::abandoned_error() const {
  const std::string text = "another thread used the arena " + name_ +
                           " when this process was forked; make a new arena in this process";
  return make_error(TF_FAILED_PRECONDITION, text.c_str());
}

mtf_error* Arena::given_twice(uintptr_t address) const {
  std::string text;
  add(&text, "the source of the arena %.200s returned memory that it had given out before,"
             " at 0x%" PRIxPTR " (rule SE-135); report it to its authors",
      name_.c_str(), address);
  return make_rule_error(135, text.c_str());
}

mtf_error* Arena::out_of_memory(uint64_t bytes) const {
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

mtf_error* Arena::not_live(uintptr_t address) const {
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

}  // namespace mtf
