// What the fuzzer of the protocol throws, and how it ends where something does not hold.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

using Dice = std::mt19937_64;

inline void check(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "protocol_fuzzer: %s\n", what);
  std::_Exit(1);
}

inline bool one_in(Dice& dice, unsigned many) { return dice() % many == 0; }

template <class Value, size_t count>
Value any_of(Dice& dice, const Value (&values)[count]) {
  return values[dice() % count];
}

inline int64_t any_number(Dice& dice) {
  const int64_t numbers[] = {0, 0, 1, 2, 3, 100, -1, INT32_MAX, int64_t{INT32_MAX} + 1,
                             INT64_MAX, INT64_MIN, static_cast<int64_t>(dice() % 100000)};
  return any_of(dice, numbers);
}
