// Running the body of a slot so that no exception reaches the host, which is C.
#pragma once

#include <exception>
#include <new>
#include <system_error>

#include "cl_error.h"
#include "modular_tf/status.h"

namespace opencl {

// `status` is OK unless `body` throws; threads that cannot be started count as memory does.
template <class Body>
void reported(TF_Status* status, Body&& body) noexcept {
  try {
    body();
    TF_SetStatus(status, TF_OK, "");
  } catch (const Failed& failed) {
    TF_SetStatus(status, failed.code, failed.what());
  } catch (const std::bad_alloc&) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::system_error& error) {
    TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, error.what());
  } catch (const std::exception& error) {
    TF_SetStatus(status, TF_INTERNAL, error.what());
  }
}

}  // namespace opencl
