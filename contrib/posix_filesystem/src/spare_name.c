#include "spare_name.h"

#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

/* Where the kernel has no random numbers yet: different for each call and process. */
static uint64_t bits_of_the_clock(void) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
}

void posix_spare_name(char name[kSpareNameBytes]) {
  uint64_t bits;
  if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits)) bits = bits_of_the_clock();
  snprintf(name, kSpareNameBytes, ".copy-%016llx", (unsigned long long)bits);
}
