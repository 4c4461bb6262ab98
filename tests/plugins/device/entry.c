/* The plugin's entry point. FIXTURE_VARIANT (a string) names the variant, FIXTURE_TYPE and
 * FIXTURE_PLATFORM (strings) the device type and the platform. FIXTURE_INIT_CRASHES makes a binary
 * that does not get as far as a registration. */
#define _POSIX_C_SOURCE 200809L
#include <signal.h>

#include "../report.h"
#include "plan.h"

const char fixture_variant[] = FIXTURE_VARIANT;

void SE_InitPlugin(SE_PlatformRegistrationParams* params, TF_Status* status) {
#ifdef FIXTURE_INIT_CRASHES
  raise(SIGSEGV);
#endif
  plan_good_device(FIXTURE_TYPE, FIXTURE_PLATFORM);
  apply_variant(fixture_variant);
  register_plan(params, status);
}
