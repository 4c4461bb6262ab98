/* Floating-point control state: rounding, denormal numbers, and which exceptions end the process. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

/* What calls into plugins have changed in this process, on any thread, and what was undone when they
 * returned: 1 exceptions, 2 denormal numbers, 4 rounding or precision; added. [any thread] */
int mtf_undone_float_changes(void);

#ifdef __cplusplus
}

#include <cstdint>

// Floating-point control state that outlasts a call into a plugin (float_state.h).

namespace mtf {

// Control words of this thread; the flags of what has happened are no part of them.
struct FloatControl {
  uint32_t vector;
  uint16_t x87;

  static FloatControl now() noexcept {
    FloatControl found = {};
#if defined(__x86_64__)
    __asm__ volatile("stmxcsr %0" : "=m"(found.vector));
    __asm__ volatile("fnstcw %0" : "=m"(found.x87));
    found.vector &= ~kFlags;
#elif defined(__aarch64__)
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    found.vector = static_cast<uint32_t>(control);
#endif
    return found;
  }

  bool operator==(const FloatControl& other) const noexcept {
    return vector == other.vector && x87 == other.x87;
  }

  static constexpr uint32_t kFlags = 0x3f;  // of MXCSR
};

// Notes what is another than before, and puts that back.
__attribute__((cold, noinline)) void restore_float_control(const FloatControl& before,
                                                           const FloatControl& now) noexcept;

// Around a call: the control state is put back when it has ended, however.
class KeptFloatState {
 public:
  KeptFloatState() = default;
  ~KeptFloatState() {
    const FloatControl now = FloatControl::now();
    if (__builtin_expect(!(now == before_), 0)) restore_float_control(before_, now);
  }
  KeptFloatState(const KeptFloatState&) = delete;
  KeptFloatState& operator=(const KeptFloatState&) = delete;

 private:
  const FloatControl before_ = FloatControl::now();
};

}  // namespace mtf
#endif
