// The entry point: the reference plugin's tables, with one defect.
//
// A host asks for three of the tables only later. They are made beforehand, so that a defect can
// change all of them in one place, and handed out when the host asks.
#include "defects.h"

// The reference plugin's own entry point, under the name that it is compiled with.
extern "C" void reference_init_plugin(SE_PlatformRegistrationParams* params, TF_Status* status);

namespace defective {

Originals original;

namespace {

SP_DeviceFns device_fns;
SP_StreamExecutor executor;
SP_TimerFns timer_fns;

void create_device_fns(const SP_Platform*, SE_CreateDeviceFnsParams* params, TF_Status* status) {
  *params->device_fns = device_fns;
  TF_SetStatus(status, TF_OK, "");
}

void create_stream_executor(const SP_Platform*, SE_CreateStreamExecutorParams* params,
                            TF_Status* status) {
  *params->stream_executor = executor;
  TF_SetStatus(status, TF_OK, "");
}

void create_timer_fns(const SP_Platform*, SP_TimerFns* fns, TF_Status* status) {
  *fns = timer_fns;
  TF_SetStatus(status, TF_OK, "");
}

void fill_tables(const SP_Platform& platform, const SP_PlatformFns& fns, TF_Status* status) {
  device_fns = {};
  SE_CreateDeviceFnsParams device_params{};
  device_params.device_fns = &device_fns;
  fns.create_device_fns(&platform, &device_params, status);
  executor = {};
  SE_CreateStreamExecutorParams executor_params{};
  executor_params.stream_executor = &executor;
  fns.create_stream_executor(&platform, &executor_params, status);
  timer_fns = {};
  fns.create_timer_fns(&platform, &timer_fns, status);
}

void hand_out_tables(SP_PlatformFns& fns) {
  fns.create_device_fns = create_device_fns;
  fns.create_stream_executor = create_stream_executor;
  fns.create_timer_fns = create_timer_fns;
}

}  // namespace
}  // namespace defective

extern "C" TF_CAPI_EXPORT void SE_InitPlugin(SE_PlatformRegistrationParams* params,
                                             TF_Status* status) {
  using namespace defective;
  TF_Status* own = TF_NewStatus();
  reference_init_plugin(params, own);
  Outcome outcome{own};
  if (TF_GetCode(own) == TF_OK) {
    fill_tables(*params->platform, *params->platform_fns, own);
    hand_out_tables(*params->platform_fns);
    original = {*params, *params->platform_fns, device_fns, executor, timer_fns};
    Tables tables{*params,    outcome,  *params->platform, *params->platform_fns,
                  device_fns, executor, timer_fns};
    apply_chosen_defect(tables);
  }
  if (!outcome.is_untold) TF_SetStatus(status, TF_GetCode(own), TF_Message(own));
  TF_DeleteStatus(own);
}
