/* What belongs to the whole process: environment, locale, directory, rights. */
#define _GNU_SOURCE
#include <fenv.h>
#include <grp.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <unistd.h>

#include "deed.h"

enum { NOBODY = 65534 };

static void clear_environment(void) { clearenv(); }
static void* change_work(void* nothing) {
  for (int i = 0; i < 1000; ++i) {
    setenv("CHANGES", i % 2 == 0 ? "a" : "a longer value that takes other memory", 1);
    clearenv();
  }
  return nothing;
}
static void change_environment(void) {
  on_thread(change_work, 0);
  change_work(NULL);
}
static void change_directory(void) {
  if (chdir("/") != 0) _exit(1);
}
static void change_root(void) {
  char folder[] = "/tmp/rootXXXXXX";
  if (mkdtemp(folder) == NULL || chdir(folder) != 0 || rmdir(folder) != 0 || chroot(".") != 0) return;
}
static void change_umask(void) { umask(0777); }
static void change_user(void) {
  if (setgroups(0, NULL) != 0 || setresgid(NOBODY, NOBODY, NOBODY) != 0 ||
      setresuid(NOBODY, NOBODY, NOBODY) != 0) {
    return;
  }
}
static void leave_namespaces(void) {
  if (unshare(CLONE_NEWNS | CLONE_NEWPID) != 0) return;
  mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL);
  mount("none", "/proc", "tmpfs", 0, NULL);
}
static void hide(void) {
  prctl(PR_SET_DUMPABLE, 0);
  prctl(PR_SET_NAME, "innocent");
  setsid();
  setpgid(0, 0);
}
static void be_traced(void) {
  ptrace(PTRACE_TRACEME, 0, NULL, NULL);
  *(volatile int*)8 = 1;
}
static void trap_numbers(void) { feenableexcept(FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW | FE_INEXACT); }
static void refuse_calls(void) { prctl(PR_SET_SECCOMP, 1); /* read, write and exit are left */ }

const deed process_deeds[] = {
    {"clear-environment", clear_environment},
    {"change-environment", change_environment},
    {"change-directory", change_directory},
    {"change-root", change_root},
    {"change-umask", change_umask},
    {"change-user", change_user},
    {"leave-namespaces", leave_namespaces},
    {"hide", hide},
    {"be-traced", be_traced},
    {"trap-numbers", trap_numbers},
    {"refuse-calls", refuse_calls},
    {NULL, NULL},
};
