/* The plugin's entry point, and whatever must differ from binary to binary.
 *
 * FIXTURE_VARIANT (a string) names the variant, FIXTURE_SCHEME (a string) the scheme, which the
 * environment variable FIXTURE_SCHEME_NOW overrides. One of
 * FIXTURE_NO_INIT, FIXTURE_UNRESOLVED, FIXTURE_INIT_{CRASHES,ABORTS,EXITS,HANGS,THROWS} and
 * FIXTURE_CONSTRUCTOR_CRASHES makes a binary that does not get as far as a registration;
 * FIXTURE_COMPANION makes one that needs companion.c's library. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "../report.h"
#include "plan.h"

const char fixture_variant[] = FIXTURE_VARIANT;

#ifdef FIXTURE_UNRESOLVED
extern void TF_NobodyDefinesThis(void);
#endif

#ifdef FIXTURE_INIT_THROWS
extern void fixture_throw(const char* what); /* in throw.cc */
#endif

#ifdef FIXTURE_COMPANION
/* Lies in another library, which is found beside this one only. */
extern int fixture_companion(void);
#endif

#ifdef FIXTURE_CONSTRUCTOR_CRASHES
__attribute__((constructor)) static void crash_while_loading(void) { raise(SIGSEGV); }
#endif

#ifndef FIXTURE_NO_INIT
void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
#if defined(FIXTURE_UNRESOLVED)
  TF_NobodyDefinesThis();
#elif defined(FIXTURE_INIT_CRASHES)
  raise(SIGSEGV);
#elif defined(FIXTURE_INIT_ABORTS)
  abort();
#elif defined(FIXTURE_INIT_EXITS)
  exit(3);
#elif defined(FIXTURE_INIT_HANGS)
  for (;;) pause();
#elif defined(FIXTURE_INIT_THROWS)
  fixture_throw("thrown by TF_InitPlugin");
#elif defined(FIXTURE_COMPANION)
  if (fixture_companion() != 42) abort();
#endif
  const char* now = getenv("FIXTURE_SCHEME_NOW");
  register_fixture(info, fixture_variant, now != NULL ? now : FIXTURE_SCHEME);
}
#endif
