// Defects of the entry point that only a host with structs of just the right size sees.
#include <cstring>

#include "defects.h"

namespace {

using namespace defective;

// Writes right behind a struct: the loader lends more than that.
template <class Struct>
void overrun(Struct* lent) {
  reinterpret_cast<char*>(lent + 1)[0] = 1;
}

void overrun_device_fns(const SP_Platform* platform, SE_CreateDeviceFnsParams* params,
                        TF_Status* status) {
  original.platform_fns.create_device_fns(platform, params, status);
  overrun(params->device_fns);
}

void overrun_executor(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                      TF_Status* status) {
  original.platform_fns.create_stream_executor(platform, params, status);
  overrun(params->stream_executor);
}

char fleeting_name[] = "FLEETING_CHIP";

void reuse_the_name(const SP_Platform* platform, SE_CreateStreamExecutorParams* params,
                    TF_Status* status) {
  std::strcpy(fleeting_name, "GONE");
  original.platform_fns.create_stream_executor(platform, params, status);
}

void refuse_sizes(Tables& tables) {
  TF_SetStatus(tables.outcome.status, TF_FAILED_PRECONDITION, "compiled for another host");
}

void overrun_at_the_end(SP_Platform* platform) { overrun(platform); }

int times_initialised = 0;

void init_once(Tables& tables) {
  if (++times_initialised == 1) return;
  TF_SetStatus(tables.outcome.status, TF_ALREADY_EXISTS, "initialised before");
}

}  // namespace

DEFECTS(entry) = {
    {"SE-101", [](Tables& tables) { overrun(&tables.platform_fns); }},
    {"SE-102",
     [](Tables& tables) {
       tables.platform.name = fleeting_name;
       tables.platform_fns.create_stream_executor = reuse_the_name;
     }},
    {"SE-103", [](Tables& tables) { tables.platform_fns.create_device_fns = overrun_device_fns; }},
    {"SE-104",
     [](Tables& tables) { tables.platform_fns.create_stream_executor = overrun_executor; }},
    {"SE-105", refuse_sizes},
    {"SE-107", [](Tables& tables) { tables.outcome.is_untold = true; }},
    {"SE-108", [](Tables& tables) { tables.params.destroy_platform = overrun_at_the_end; }},
    {"SE-109", init_once},
};
