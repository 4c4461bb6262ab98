// Who may use an object that can be closed while it is used, and which of its users ends it.
#pragma once

#include <atomic>
#include <cstdint>

namespace mtf {

// Counts uses. The end (the `leave` of the last user after `close`, or a `close` without users) is
// reported to exactly one caller. All is one word: each change is atomic, and a fork finds it whole.
class Gate {
 public:
  // False: it is closed. The caller must leave() in both cases.
  bool enter() { return (state_.fetch_add(kUse) & kClosed) == 0; }
  // True: the caller ends the object now. Nothing happens in a call that a fork has left: its use
  // counts in the parent only.
  bool leave() {
    uint64_t state = state_.load();
    do {
      if (uses(state) == 0) return false;
    } while (!state_.compare_exchange_weak(state, state - kUse));
    return state - kUse == kClosed && claim_end();
  }
  // True: the caller ends the object now.
  bool close() { return (state_.fetch_or(kClosed) & ~kClosed) == 0 && claim_end(); }
  bool is_closed() const { return (state_.load() & kClosed) != 0; }
  bool has_ended() const { return (state_.load() & kEnded) != 0; }

  // A lasting use that runs no code, such as memory that is viewed: begins, and ends.
  void rest() { state_.fetch_add(kResting); }
  // Makes it an ordinary use again, which must leave(). False: the object was ended in spite of it.
  bool wake() {
    uint64_t state = state_.load();
    do {
      if ((state & kEnded) != 0) return false;
    } while (!state_.compare_exchange_weak(state, state - kResting));
    return true;
  }
  bool is_in_use() const { return uses(state_.load()) != 0; }
  uint64_t resting() const { return state_.load() / kResting; }
  // Of a closed object: true where all uses are at rest; the caller ends the object now.
  bool end_in_spite_of_resting() {
    uint64_t state = state_.load();
    do {
      const bool is_open = (state & (kClosed | kEnded)) != kClosed;
      if (is_open || uses(state) != state / kResting) return false;
    } while (!state_.compare_exchange_weak(state, state | kEnded));
    return true;
  }

  // In a forked child, which has none of the calls of other threads, but all memory. What was closed
  // and has nothing at rest has been ended, or will be, by the parent.
  void after_fork() {
    const uint64_t state = state_.load();
    const uint64_t resting = state / kResting;
    const uint64_t ended = resting == 0 ? (state & kClosed) * kEnded : state & kEnded;
    state_ = resting * (kResting + kUse) | (state & kClosed) | ended;
  }
  // It belongs to another process now: it must not be used or closed here.
  void abandon() { state_ = kClosed | kEnded; }

 private:
  static constexpr uint64_t kClosed = 1;
  static constexpr uint64_t kEnded = 2;
  static constexpr uint64_t kUse = 4;
  static constexpr uint64_t kResting = uint64_t{1} << 32;  // beside the use that it is

  static uint64_t uses(uint64_t state) { return state % kResting / kUse; }
  bool claim_end() { return (state_.fetch_or(kEnded) & kEnded) == 0; }

  std::atomic<uint64_t> state_{0};
};

}  // namespace mtf
