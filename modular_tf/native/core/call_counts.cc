#include "call_counts.h"

#include <pthread.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <new>

#include "plugin_call.h"
#include "copied_text.h"
#include "fork_lock.h"
#include "error.h"

extern "C" const mtf_plugin* mtf_plugin_new(const char* name, const char* path,
                                            const char* record) {
  auto* plugin = static_cast<mtf_plugin*>(std::malloc(sizeof(mtf_plugin)));
  const mtf_plugin made = {strdup(name), strdup(path), strdup(record)};
  if (plugin == nullptr || made.name == nullptr || made.path == nullptr || made.record == nullptr) {
    return mtf::fail_with(mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for the name of a plugin"));
  }
  *plugin = made;
  return plugin;
}

namespace mtf {

// One for each operation of a plugin, for good.
struct CallCounts {
  static constexpr size_t kCodes = sizeof(mtf_call_counts::failures) / sizeof(uint64_t);
  static constexpr size_t kDurations = sizeof(mtf_call_counts::durations) / sizeof(uint64_t);

  const mtf_plugin* const plugin;
  char* const operation;   // a copy: some callers' names end with their call
  CallCounts* const next;  // of the same bucket
  std::atomic<uint64_t> under_way{0};
  std::atomic<uint64_t> bytes{0};
  std::atomic<uint64_t> time_ns{0};
  std::atomic<uint64_t> failures[kCodes] = {};
  std::atomic<uint64_t> durations[kDurations] = {};

  CallCounts(const mtf_plugin* its_plugin, char* its_operation, CallCounts* its_next)
      : plugin(its_plugin), operation(its_operation), next(its_next) {}

  void clear() {
    for (auto* one : {&under_way, &bytes, &time_ns}) *one = 0;
    for (auto& one : failures) one = 0;
    for (auto& one : durations) one = 0;
  }
};

namespace {

constexpr size_t kBuckets = 256;

using Bucket = std::atomic<CallCounts*>;
Bucket buckets[kBuckets] = {};  // each a list that only grows
Lock growing;
Lock counting;  // for `users`
unsigned users = 0;

size_t bucket_of(const mtf_plugin* plugin, const char* operation) {
  auto mixed = static_cast<uint64_t>(reinterpret_cast<uintptr_t>(plugin) >> 4);
  for (; *operation != '\0'; ++operation) mixed = mixed * 31 + static_cast<uint64_t>(*operation);
  return (mixed ^ (mixed >> 16)) % kBuckets;
}

CallCounts* find(const Bucket& bucket, const mtf_plugin* plugin, const char* operation) {
  CallCounts* at = bucket.load(std::memory_order_acquire);
  const auto is_it = [&] {
    return at->plugin == plugin && std::strcmp(at->operation, operation) == 0;
  };
  while (at != nullptr && !is_it()) at = at->next;
  return at;
}

void add(std::atomic<uint64_t>& count, uint64_t more) {
  count.fetch_add(more, std::memory_order_relaxed);
}

size_t duration_bucket(uint64_t ns) {  // the least i with ns <= 2^i
  const size_t bits = ns <= 1 ? 0 : 64 - static_cast<size_t>(__builtin_clzll(ns - 1));
  return std::min(bits, CallCounts::kDurations - 1);
}

// A forked child makes no call that the parent made.
const int watching_forks = pthread_atfork(nullptr, nullptr, [] {
  for (const Bucket& bucket : buckets) {
    for (CallCounts* at = bucket; at != nullptr; at = at->next) at->clear();
  }
});

uint64_t now_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec);
}

void copy(const CallCounts& counts, mtf_call_counts* copied) {
  constexpr auto kRelaxed = std::memory_order_relaxed;
  *copied = {};
  copied->plugin = counts.plugin->name;
  copied->path = counts.plugin->path;
  copied->operation = counts.operation;
  copied->under_way = counts.under_way.load(kRelaxed);
  copied->bytes = counts.bytes.load(kRelaxed);
  copied->time_ns = counts.time_ns.load(kRelaxed);
  const auto load = [](const std::atomic<uint64_t>& count) { return count.load(kRelaxed); };
  std::transform(std::begin(counts.failures), std::end(counts.failures), copied->failures, load);
  std::transform(std::begin(counts.durations), std::end(counts.durations), copied->durations, load);
}

// The counts of an operation of a plugin, which are never freed; NULL where there is no memory.
CallCounts* counts_of(const mtf_plugin* plugin, const char* operation) noexcept {
  Bucket& bucket = buckets[bucket_of(plugin, operation)];
  if (CallCounts* found = find(bucket, plugin, operation)) return found;
  const LockGuard lock(growing);
  if (CallCounts* found = find(bucket, plugin, operation)) return found;
  char* const copied = mtf_copied_text(operation);
  if (copied == nullptr) return nullptr;
  auto* made = new (std::nothrow) CallCounts(plugin, copied, bucket);
  if (made == nullptr) {
    std::free(copied);
  } else {
    bucket.store(made, std::memory_order_release);
  }
  return made;
}

void count_begin(CallCounts& counts) noexcept { add(counts.under_way, 1); }

void count_end(CallCounts& counts, uint64_t duration_ns, uint64_t bytes, int code) noexcept {
  const auto codes = static_cast<int>(CallCounts::kCodes);
  counts.under_way.fetch_sub(1, std::memory_order_relaxed);
  add(counts.durations[duration_bucket(duration_ns)], 1);
  add(counts.time_ns, duration_ns);
  if (bytes != 0) add(counts.bytes, bytes);
  if (code != 0) add(counts.failures[code > 0 && code < codes ? code : int{TF_UNKNOWN}], 1);
}

}  // namespace

// -- the measure of one call --

CallMeasure::CallMeasure(const CallUnderWay& call) noexcept : call_(call) {
  if (call_.plugin == nullptr || call_.operation == kPluginMemoryFree) return;
  const unsigned wanted = measured.load(std::memory_order_relaxed);
  process_ = fork_generation();
  is_traced_ = (wanted & kMeasureTrace) != 0;
  if ((wanted & kMeasureCounts) != 0) counts_ = counts_of(call_.plugin, call_.operation);
  if (counts_ != nullptr) count_begin(*counts_);
  begin_ns_ = now_ns();
}

CallMeasure::~CallMeasure() {
  if (begin_ns_ == 0 || process_ != fork_generation()) return;  // else it goes on in the parent
  const int left_by_plugin = errno;
  const uint64_t end_ns = now_ns();
  if (counts_ != nullptr) count_end(*counts_, end_ns - begin_ns_, call_.bytes(), code_);
  if (is_traced_) trace_call(call_, begin_ns_, end_ns, code_);
  errno = left_by_plugin;
}

}  // namespace mtf

extern "C" void mtf_call_counts_begin(void) {
  const mtf::LockGuard lock(mtf::counting);
  mtf::measured.fetch_or(mtf::kMeasureCounts);
  ++mtf::users;
}

extern "C" void mtf_call_counts_end(void) {
  const mtf::LockGuard lock(mtf::counting);
  if (--mtf::users == 0) mtf::measured.fetch_and(~mtf::kMeasureCounts);
}

extern "C" const void* mtf_call_counts_next(const void* previous, mtf_call_counts* counts) {
  const auto* const last = static_cast<const mtf::CallCounts*>(previous);
  const mtf::CallCounts* found = last == nullptr ? nullptr : last->next;
  size_t at = last == nullptr ? 0 : mtf::bucket_of(last->plugin, last->operation) + 1;
  for (; found == nullptr && at < mtf::kBuckets; ++at) found = mtf::buckets[at];
  if (found != nullptr) mtf::copy(*found, counts);
  return found;
}
