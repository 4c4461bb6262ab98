/* Memory, processes, output and limits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "deed.h"

enum { BOMB = 1500 };
static void* volatile kept;

static void limit(int kind, rlim_t most) {
  const struct rlimit limits = {most, most};
  setrlimit(kind, &limits);
}

/* The limit stands for the end of the machine's memory. */
static void memory_bomb(void) {
  limit(RLIMIT_DATA, (rlim_t)3 << 29);
  for (;;) memset(kept = malloc((size_t)16 << 20), 1, (size_t)16 << 20);
}

/* As many as the machine of the tests can bear. */
static void fork_bomb(void) {
  for (int left = BOMB; left > 0 && fork() != 0; --left) continue;
  for (;;) pause();
}

static void* start_threads(void* nothing) {
  for (;;) pause();
  return nothing;
}
static void thread_bomb(void) {
  for (int i = 0; i < 2000; ++i) on_thread(start_threads, 0);
}

static void daemonise(void) {
  if (fork() == 0) {
    setsid();
    if (fork() != 0) _exit(0);
    for (;;) pause();
  }
}

/* Goes on in both processes: each of them answers the call. */
static void fork_and_return(void) { fork(); }
static void become_another(void) {
  char* const arguments[] = {"sleep", "60", NULL};
  execv("/bin/sleep", arguments);
  execv("/usr/bin/sleep", arguments);
}
static void become_another_that_ends(void) {
  char* const arguments[] = {"true", NULL};
  execv("/bin/true", arguments);
  execv("/usr/bin/true", arguments);
}

/* A gibibyte to each of the standard streams, in all; ends with the process where that ends. */
static void output(void) {
  static char block[1 << 16];
  memset(block, 'o', sizeof block - 1);
  for (int i = 0; i < 1 << 13; ++i)
    for (int stream = 1; stream <= 2; ++stream)
      if (write(stream, block, sizeof block) < 0) return;
}

static void limits_zero(void) {
  for (int kind = 0; kind < RLIMIT_NLIMITS; ++kind) {
    if (kind != RLIMIT_CPU) limit(kind, 0);
  }
}
static void no_processor(void) {
  limit(RLIMIT_CPU, 0);
  for (volatile int on = 1; on;) on = 1;
}
static struct rlimit most_descriptors;
static void no_descriptors(void) {
  getrlimit(RLIMIT_NOFILE, &most_descriptors);
  const struct rlimit none = {0, most_descriptors.rlim_max};
  setrlimit(RLIMIT_NOFILE, &none);
}
static void descriptors_again(void) { setrlimit(RLIMIT_NOFILE, &most_descriptors); }
/* Of the core, in this thread; where tests/native/failing_allocator.c is preloaded. */
static void fail_next_allocation(void) {
  void (*fail)(long, int) = (void (*)(long, int))dlsym(RTLD_DEFAULT, "fail_allocations");
  if (fail != NULL) fail(0, 0);
}
static void no_file_size(void) {
  signal(SIGXFSZ, SIG_DFL);
  limit(RLIMIT_FSIZE, 0);
}

/* Takes the shared memory of the channels away. */
static void unmap_shared(void) {
  static char text[1 << 20];
  size_t used = 0;
  ssize_t got;
  int maps = open("/proc/self/maps", O_RDONLY);
  while (used < sizeof text - 1 && (got = read(maps, text + used, sizeof text - 1 - used)) > 0) {
    used += (size_t)got;
  }
  close(maps);
  for (char* line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    if (strstr(line, "modular_tf call") == NULL) continue;
    char* behind;
    const size_t first = strtoul(line, &behind, 16), last = strtoul(behind + 1, NULL, 16);
    munmap((void*)first, last - first);
  }
}

static void unmap_all(void) { munmap((void*)4096, ((size_t)1 << 47) - 3 * 4096); }

const deed resource_deeds[] = {
    {"memory-bomb", memory_bomb},
    {"fork-bomb", fork_bomb},
    {"thread-bomb", thread_bomb},
    {"daemonise", daemonise},
    {"fork-and-return", fork_and_return},
    {"become-another", become_another},
    {"become-another-that-ends", become_another_that_ends},
    {"output", output},
    {"limits-zero", limits_zero},
    {"no-processor", no_processor},
    {"no-descriptors", no_descriptors},
    {"descriptors-again", descriptors_again},
    {"fail-next-allocation", fail_next_allocation},
    {"no-file-size", no_file_size},
    {"unmap-shared", unmap_shared},
    {"unmap-all", unmap_all},
    {NULL, NULL},
};
