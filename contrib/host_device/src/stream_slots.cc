#include "device.h"
#include "reported.h"
#include "slots.h"

namespace host {
namespace {

void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  reported(status, [&] {
    auto made = std::make_unique<SP_Stream_st>();
    device_of(device).add(made->stream);
    *stream = made.release();
  });
}

void destroy_stream(const SP_Device* device, SP_Stream stream) {
  if (stream == nullptr) return;
  device_of(device).remove(stream->stream);
  delete stream;
}

void create_stream_dependency(const SP_Device*, SP_Stream dependent, SP_Stream other,
                              TF_Status* status) {
  reported(status, [&] { dependent->stream.wait_for(other->stream.mark()); });
}

void get_stream_status(const SP_Device*, SP_Stream stream, TF_Status* status) {
  Failure failure;
  reported(status, [&] { failure = stream->stream.failure()->get(); });
  if (failure.code != TF_OK) TF_SetStatus(status, failure.code, failure.message.c_str());
}

void block_host_until_done(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  wait_for_stream(stream, status);
  if (TF_GetCode(status) == TF_OK) get_stream_status(device, stream, status);
}

void synchronize_all_activity(const SP_Device* device, TF_Status* status) {
  reported(status, [&] { device_of(device).synchronize(); });
}

// On the stream's thread.
void run_callback(FirstFailure& failure, SE_StatusCallbackFn callback, void* argument) {
  TF_Status* status = TF_NewStatus();
  callback(argument, status);
  if (TF_GetCode(status) != TF_OK) failure.set(TF_GetCode(status), TF_Message(status));
  TF_DeleteStatus(status);
}

// Not 0: enqueued. TF_OK would be 0, which the host reads as "no".
TF_Bool host_callback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn callback,
                      void* argument) {
  try {
    stream->stream.enqueue([failure = stream->stream.failure(), callback, argument] {
      run_callback(*failure, callback, argument);
    });
    return 1;
  } catch (const std::bad_alloc&) {
    return 0;
  }
}

}  // namespace

void wait_for_stream(SP_Stream stream, TF_Status* status) {
  reported(status, [&] { stream->stream.mark()->wait(); });
}

void fill_stream_slots(SP_StreamExecutor& executor) {
  executor.create_stream = create_stream;
  executor.destroy_stream = destroy_stream;
  executor.create_stream_dependency = create_stream_dependency;
  executor.get_stream_status = get_stream_status;
  executor.block_host_until_done = block_host_until_done;
  executor.synchronize_all_activity = synchronize_all_activity;
  executor.host_callback = host_callback;
}

}  // namespace host
