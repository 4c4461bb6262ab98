/* Does a MISDEED at a PLACE, in front of the well-behaved plugin of tests/device/dialects, whose
 * SE_InitPlugin was renamed to dialect_init. Each macro is one of the names below. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../device/dialects/layouts.h"

#define VISIBLE __attribute__((visibility("default")))

enum place { NOWHERE, CONSTRUCTOR, INIT, CREATE_DEVICE, DESTROY_DEVICE, MEMORY_USAGE };
enum misdeed {
  NOTHING, CRASH, ABORT, EXIT_0, EXIT_3, HANG, THROW, CLOSE_ALL, CLOSE_OUTPUT, NOISE, FORK, DAEMON,
  LAST_WORDS, KILLED, LOOK_AROUND, SCRIBBLE,
};

void dialect_init(Registration* params, Status* status);
void fixture_throw(const char* what);

/* Writes the own process id to the file that a variable names, for the tests that end others. */
static void leave_pid(void) {
  const char* path = getenv("MISDEED_PID");
  FILE* file = path == NULL ? NULL : fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%d\n", (int)getpid());
  fclose(file);
}

/* A process that keeps all descriptors open for longer than any test waits. */
static void stay(int leaves_group) {
  if (fork() != 0) return;
  if (leaves_group) {
    setsid();
    alarm(20);
  }
  leave_pid();
  for (;;) pause();
}

static void make_noise(void) {
  static const char line[] = "{\"lost\": \"nothing\"} \n";
  for (int i = 0; i < 100000; ++i)
    for (int fd = 1; fd <= 2; ++fd)
      if (write(fd, line, sizeof(line) - 1) < 0) return;
}

/* Writes what is no report to all that is open, so to the report too. */
static void scribble(void) {
  static char deep[65536];
  memset(deep, '[', sizeof(deep) - 1);
  for (int fd = 3; fd < 64; ++fd) {
    dprintf(fd, "5\n\xff\n\"x\"\nnull\n{\n{\"enters\": 5}\n%s\n%s", deep, deep);
  }
}

/* Tells which descriptors are open, how large a core dump may be, and what the environment is. */
static void look_around(void) {
  FILE* file = fopen(getenv("MISDEED_NOTES"), "w");
  for (int fd = 0; fd < 1024; ++fd)
    if (fd != fileno(file) && fcntl(fd, F_GETFD) != -1) fprintf(file, "fd %d\n", fd);
  struct rlimit core;
  if (getrlimit(RLIMIT_CORE, &core) == 0) fprintf(file, "core %d\n", (int)core.rlim_max);
  for (char** variable = environ; *variable != NULL; ++variable) fprintf(file, "%s\n", *variable);
  fclose(file);
}

static void misbehave(void) {
  switch (MISDEED) {
    case CRASH: *(volatile int*)8 = 1; break;
    case ABORT: abort();
    case EXIT_0: exit(0);
    case EXIT_3: exit(3);
    case HANG: leave_pid(); for (;;) pause();
    case THROW: fixture_throw("no such driver"); break;
    case CLOSE_ALL: for (int fd = 0; fd < 1024; ++fd) close(fd); break;
    case CLOSE_OUTPUT: close(1); break;
    case NOISE: make_noise(); break;
    case FORK: stay(0); break;
    case DAEMON: stay(1); break;
    case LAST_WORDS: fputs("first\n\nno driver\x1b[0m\n", stderr); _exit(3);
    case KILLED: raise(SIGKILL); break;
    case LOOK_AROUND: look_around(); break;
    case SCRIBBLE: scribble(); break;
    default: break;
  }
}

static void at(enum place place) {
  if (place == PLACE) misbehave();
}

__attribute__((constructor)) static void constructor(void) { at(CONSTRUCTOR); }

static PlatformFns well_behaved;

static void create_device(const Platform* platform, CreateDeviceParams* params, Status* status) {
  if (params->ordinal == 1) at(CREATE_DEVICE);
  well_behaved.create_device(platform, params, status);
}
static void destroy_device(const Platform* platform, Device* device) {
  at(DESTROY_DEVICE);
  well_behaved.destroy_device(platform, device);
}
static unsigned char memory_usage(const Device* device, int64_t* available, int64_t* total) {
  (void)device;
  at(MEMORY_USAGE);
  *available = *total = 1 << 20;
  return 1;
}
static void create_executor(const Platform* platform, CreateExecutorParams* params,
                            Status* status) {
  well_behaved.create_stream_executor(platform, params, status);
  params->executor->device_memory_usage = memory_usage;
}

VISIBLE void SE_InitPlugin(Registration* params, Status* status) {
  at(INIT);
  dialect_init(params, status);
  well_behaved = *params->platform_fns;
  params->platform_fns->create_device = create_device;
  params->platform_fns->destroy_device = destroy_device;
  params->platform_fns->create_stream_executor = create_executor;
}
