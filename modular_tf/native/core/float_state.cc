#include "float_state.h"

#include <atomic>

namespace {

enum Change { kExceptions = 1, kDenormals = 2, kRounding = 4 };

// The bits of control registers.
struct Bits {
  uint32_t exceptions, denormals, rounding;
};

#if defined(__aarch64__)
constexpr Bits kVector = {0x9f00, 0x1080000, 0xc00000};
#else
constexpr Bits kVector = {0x1f80, 0x8040, 0x6000};
#endif
constexpr Bits kX87 = {0x3f, 0, 0xf00};

std::atomic<int> undone{0};

int changes(uint32_t different, const Bits& bits) {
  return ((different & bits.exceptions) != 0 ? kExceptions : 0) |
         ((different & bits.denormals) != 0 ? kDenormals : 0) |
         ((different & bits.rounding) != 0 ? kRounding : 0);
}

}  // namespace

namespace mtf {

void restore_float_control(const FloatControl& before, const FloatControl& now) noexcept {
  const auto x87 = static_cast<uint32_t>(before.x87 ^ now.x87);
  undone.fetch_or(changes(before.vector ^ now.vector, kVector) | changes(x87, kX87));
#if defined(__x86_64__)
  uint32_t vector;
  __asm__ volatile("stmxcsr %0" : "=m"(vector));
  vector = before.vector | (vector & FloatControl::kFlags);
  __asm__ volatile("ldmxcsr %0" : : "m"(vector));
  // Without the flags: one that is set traps at the next operation where the caller wants traps.
  __asm__ volatile("fnclex");
  __asm__ volatile("fldcw %0" : : "m"(before.x87));
#elif defined(__aarch64__)
  const uint64_t control = before.vector;
  __asm__ volatile("msr fpcr, %0" : : "r"(control));
#endif
}

}  // namespace mtf

extern "C" int mtf_undone_float_changes(void) { return undone; }
