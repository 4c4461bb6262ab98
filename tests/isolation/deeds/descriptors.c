/* The descriptors of the process: its sockets to the host, its report, its streams. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "deed.h"

enum { REPORT = 3, CONTROL = 4, FIRST_FREE = 512, MOST = 1024 };

static int is_channel(int descriptor) {
  int kind = 0;
  socklen_t size = sizeof kind;
  return descriptor > CONTROL && getsockopt(descriptor, SOL_SOCKET, SO_TYPE, &kind, &size) == 0 &&
         kind == SOCK_SEQPACKET;
}

static void each_channel(void (*act)(int descriptor)) {
  for (int descriptor = 0; descriptor < MOST; ++descriptor)
    if (is_channel(descriptor)) act(descriptor);
}

static void close_from(int first) {
  for (int descriptor = first; descriptor < MOST; ++descriptor) close(descriptor);
}
static void close_one(int descriptor) { close(descriptor); }
static void close_all(void) { close_from(0); }
static void close_streams(void) {
  for (int descriptor = 0; descriptor < REPORT; ++descriptor) close(descriptor);
}
static void close_report(void) { close(REPORT); }
static void close_control(void) { close(CONTROL); }
static void close_channels(void) { each_channel(close_one); }

static void shut_one(int descriptor) { shutdown(descriptor, SHUT_RDWR); }
static void shut_channels(void) { each_channel(shut_one); }

/* The other end stays open, and nobody reads there. */
static void replace_by_own(int descriptor) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0) dup2(ends[0], descriptor);
}
static void own_over_channels(void) { each_channel(replace_by_own); }
static void own_over_control(void) { replace_by_own(CONTROL); }

static void do_not_wait(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}
static void do_not_wait_on_channels(void) { each_channel(do_not_wait); }

/* The host sees no end of a channel that is open elsewhere too. */
static void keep_copy(int descriptor) {
  if (fcntl(descriptor, F_DUPFD, FIRST_FREE) >= 0) close(descriptor);
}
static void move_channels(void) {
  for (int descriptor = 0; descriptor < FIRST_FREE; ++descriptor)
    if (is_channel(descriptor)) keep_copy(descriptor);
}

static void leak(void) {
  while (open("/dev/null", O_RDONLY) >= 0) {
  }
}

/* What the host sends on channels: descriptors of areas and directories. */
static void* take_files(void* nothing) {
  char room[1 << 16];
  for (;;) {
    for (int descriptor = CONTROL; descriptor < 64; ++descriptor)
      if (is_channel(descriptor)) recv(descriptor, room, sizeof room, MSG_DONTWAIT);
    sleep_ms(1);
  }
  return nothing;
}
static void steal_files(void) { on_thread(take_files, 0); }

/* Entries such as the host's own, to the process that watches. */
static void forge_report(void) {
  for (int i = 0; i < 100000; ++i) {
    dprintf(REPORT, "{\"offer\": {}}\n{\"ended\": {}}\n{\"signal\": 11, \"errno\": 0, \"overflow\": 0}\n");
    dprintf(REPORT, "[[[[[5\n\xff\n{\"frame\": [5, 5, 5]}\n");
  }
}
static void report_without_end(void) {
  static char block[1 << 16];
  for (char* at = block; at < block + sizeof block; ++at) *at = '[';
  for (int i = 0; i < 1024; ++i)
    if (write(REPORT, block, sizeof block) < 0) return;
}

const deed descriptor_deeds[] = {
    {"close-all", close_all},
    {"close-streams", close_streams},
    {"close-report", close_report},
    {"close-control", close_control},
    {"close-channels", close_channels},
    {"shut-channels", shut_channels},
    {"own-over-channels", own_over_channels},
    {"own-over-control", own_over_control},
    {"do-not-wait-on-channels", do_not_wait_on_channels},
    {"move-channels", move_channels},
    {"leak", leak},
    {"steal-files", steal_files},
    {"forge-report", forge_report},
    {"report-without-end", report_without_end},
    {NULL, NULL},
};
