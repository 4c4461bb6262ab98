/* The plugin's entry point, and whatever must differ from binary to binary.
 *
 * FIXTURE_VARIANT (a string) names the variant, FIXTURE_SCHEME (a string) the scheme, which the
 * environment variable FIXTURE_SCHEME_NOW overrides. One of
 * FIXTURE_NO_INIT, FIXTURE_UNRESOLVED, FIXTURE_INIT_{CRASHES,ABORTS,EXITS,HANGS,THROWS} and
 * FIXTURE_CONSTRUCTOR_CRASHES makes a binary that does not get as far as a registration;
 * FIXTURE_COMPANION makes one that needs companion.c's library, FIXTURE_NEEDS_THE_INSIDE one that
 * asks for a C++ function of TensorFlow's, FIXTURE_EXPORTS_THE_INTERFACE one that shows a function of
 * the C API as its own, FIXTURE_CONSTRUCTOR_PRINTS one that writes to standard error when mapped. */
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

#ifdef FIXTURE_CONSTRUCTOR_PRINTS
__attribute__((constructor)) static void print_while_loading(void) {
  static const char words[] = "fixture: here I am\n";
  if (write(STDERR_FILENO, words, sizeof(words) - 1) < 0) abort();
}
#endif

#ifdef FIXTURE_NEEDS_THE_INSIDE
extern void _ZN3tsl5mutex6unlockEv(void* mutex);
void (*const fixture_inside)(void* mutex) = _ZN3tsl5mutex6unlockEv;
#endif

#ifdef FIXTURE_EXPORTS_THE_INTERFACE
/* As a plugin does that TensorFlow was linked into; nothing here calls it. */
TF_CAPI_EXPORT uint64_t TF_NowSeconds(void) { return 0; }
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
