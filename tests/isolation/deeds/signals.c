/* Signals: to itself, to those around it, and their handlers. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

#include "deed.h"

static void kill_self(void) { kill(getpid(), SIGKILL); }
static void stop_self(void) { kill(getpid(), SIGSTOP); }
static void interrupt_self(void) { kill(getpid(), SIGINT); }
static void kill_group(void) { kill(0, SIGKILL); }
static void stop_group(void) { kill(0, SIGSTOP); }
static void kill_everybody(void) { kill(-1, SIGKILL); }
static void stop_parent(void) { kill(getppid(), SIGSTOP); }

static int parent_of(int pid) {
  char name[64], text[512] = "";
  snprintf(name, sizeof name, "/proc/%d/stat", pid);
  FILE* file = fopen(name, "r");
  if (file == NULL) return 0;
  size_t got = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[got] = '\0';
  const char* behind = strrchr(text, ')');
  return behind == NULL ? 0 : (int)strtol(behind + 4, NULL, 10);
}

/* All that it can see above it, but never the first process of a machine. */
static void each_ancestor(void (*act)(int pid)) {
  for (int pid = parent_of(getpid()); pid > 1; pid = parent_of(pid)) act(pid);
}
static void kill_one(int pid) { kill(pid, SIGKILL); }
static void kill_ancestors(void) { each_ancestor(kill_one); }
static void trace_one(int pid) {
  if (ptrace(PTRACE_ATTACH, pid, NULL, NULL) == 0) kill(pid, SIGSTOP);
}
static void trace_ancestors(void) { each_ancestor(trace_one); }
static void write_to_one(int pid) {
  char rubbish[64];
  memset(rubbish, 'x', sizeof rubbish);
  struct iovec here = {rubbish, sizeof rubbish}, there = {(void*)&write_to_one, sizeof rubbish};
  if (process_vm_writev(pid, &here, 1, &there, 1, 0) > 0) kill(pid, SIGSTOP);
}
static void write_to_ancestors(void) { each_ancestor(write_to_one); }

static void nothing(int number) { (void)number; }
static void return_from_fault(void) {
  signal(SIGSEGV, nothing);
  *(volatile int*)8 = 1;
}
static void default_fault(void) {
  signal(SIGSEGV, SIG_DFL);
  *(volatile int*)8 = 1;
}
static void survive_parent(void) {
  prctl(PR_SET_PDEATHSIG, 0);
  signal(SIGTERM, SIG_IGN);
  kill(getppid(), SIGKILL);
  for (;;) pause();
}

const deed signal_deeds[] = {
    {"kill-self", kill_self},
    {"interrupt-self", interrupt_self},
    {"stop-self", stop_self},
    {"kill-group", kill_group},
    {"stop-group", stop_group},
    {"kill-everybody", kill_everybody},
    {"stop-parent", stop_parent},
    {"kill-ancestors", kill_ancestors},
    {"trace-ancestors", trace_ancestors},
    {"write-to-ancestors", write_to_ancestors},
    {"return-from-fault", return_from_fault},
    {"default-fault", default_fault},
    {"survive-parent", survive_parent},
    {NULL, NULL},
};
