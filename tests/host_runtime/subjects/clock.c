/* The clocks of env.h, driven from C. */
#include <time.h>

#include "cases.h"
#include "modular_tf/env.h"

CASE(the_clocks_agree_with_the_system) {
  const uint64_t before = (uint64_t)time(NULL);
  const uint64_t seconds = TF_NowSeconds();
  const uint64_t micros = TF_NowMicros();
  const uint64_t nanos = TF_NowNanos();
  struct timespec after;
  clock_gettime(CLOCK_REALTIME, &after);
  CHECK(before <= seconds);
  CHECK(seconds <= micros / 1000000u);
  CHECK(micros <= nanos / 1000u);
  CHECK(nanos <= (uint64_t)after.tv_sec * 1000000000u + (uint64_t)after.tv_nsec);
}
