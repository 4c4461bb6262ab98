#include "device.h"
#include "reported.h"
#include "slots.h"

namespace opencl {
namespace {

void create_stream(const SP_Device* device, SP_Stream* stream, TF_Status* status) {
  reported(status, [&] { *stream = device_of(device).add_stream().release(); });
}

void destroy_stream(const SP_Device* device, SP_Stream stream) {
  if (stream == nullptr) return;
  device_of(device).forget(*stream);
  delete stream;
}

void create_stream_dependency(const SP_Device*, SP_Stream dependent, SP_Stream other,
                              TF_Status* status) {
  reported(status, [&] { dependent->stream.wait_for(other->stream.mark()); });
}

void get_stream_status(const SP_Device*, SP_Stream stream, TF_Status* status) {
  reported(status, [&] {
    const Failure failure = stream->stream.failure();
    if (failure.code != TF_OK) throw Failed(failure.code, failure.message);
  });
}

void block_host_until_done(const SP_Device* device, SP_Stream stream, TF_Status* status) {
  reported(status, [&] { stream->stream.mark().wait(); });
  if (TF_GetCode(status) == TF_OK) get_stream_status(device, stream, status);
}

void synchronize_all_activity(const SP_Device* device, TF_Status* status) {
  reported(status, [&] { device_of(device).synchronize(); });
}

// Not 0: enqueued. TF_OK would be 0, which the host reads as "no".
TF_Bool host_callback(const SP_Device*, SP_Stream stream, SE_StatusCallbackFn callback,
                      void* argument) {
  try {
    stream->stream.call(callback, argument);
    return 1;
  } catch (const std::exception&) {
    return 0;
  }
}

}  // namespace

void fill_stream_slots(SP_StreamExecutor& executor) {
  executor.create_stream = create_stream;
  executor.destroy_stream = destroy_stream;
  executor.create_stream_dependency = create_stream_dependency;
  executor.get_stream_status = get_stream_status;
  executor.block_host_until_done = block_host_until_done;
  executor.synchronize_all_activity = synchronize_all_activity;
  executor.host_callback = host_callback;
}

}  // namespace opencl
