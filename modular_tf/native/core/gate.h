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
  void pin() { state_.fetch_add(kPin); }
  // Makes it an ordinary use again, which must leave(). False: the object was ended in spite of it.
  bool unpin() {
    uint64_t state = state_.load();
    do {
      if ((state & kEnded) != 0) return false;
    } while (!state_.compare_exchange_weak(state, state - kPin));
    return true;
  }
  bool is_in_use() const { return uses(state_.load()) != 0; }
  uint64_t pins() const { return state_.load() / kPin; }
  // Of a closed object: true where all uses are pins; the caller ends the object now.
  bool end_ignoring_pins() {
    uint64_t state = state_.load();
    do {
      const bool is_open = (state & (kClosed | kEnded)) != kClosed;
      if (is_open || uses(state) != state / kPin) return false;
    } while (!state_.compare_exchange_weak(state, state | kEnded));
    return true;
  }

  // In a forked child, which has none of the calls of other threads, but all memory. What was closed
  // and has no pins has been ended, or will be, by the parent.
  void after_fork() {
    const uint64_t state = state_.load();
    const uint64_t pins = state / kPin;
    const uint64_t ended = pins == 0 ? (state & kClosed) * kEnded : state & kEnded;
    state_ = pins * (kPin + kUse) | (state & kClosed) | ended;
  }
  // It belongs to another process now: it must not be used or closed here.
  void abandon() { state_ = kClosed | kEnded; }

 private:
  static constexpr uint64_t kClosed = 1;
  static constexpr uint64_t kEnded = 2;
  static constexpr uint64_t kUse = 4;
  static constexpr uint64_t kPin = uint64_t{1} << 32;  // beside the use that it is

  static uint64_t uses(uint64_t state) { return state % kPin / kUse; }
  bool claim_end() { return (state_.fetch_or(kEnded) & kEnded) == 0; }

  std::atomic<uint64_t> state_{0};
};

}  // namespace mtf
