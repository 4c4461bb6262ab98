#include "error.h"

#include <cstdlib>
#include <cstring>

#include "guard.h"

namespace mtf {
namespace {

char no_memory_text[] = "out of memory while reporting an error";
mtf_error no_memory = {8, 0, 0, no_memory_text};

}  // namespace

mtf_error* make_error(int code, const char* message, bool thrown) {
  auto* error = static_cast<mtf_error*>(std::malloc(sizeof(mtf_error)));
  char* copy = strdup(message != nullptr ? message : "");
  if (error == nullptr || copy == nullptr) {
    std::free(error);
    std::free(copy);
    return &no_memory;
  }
  *error = {code, thrown ? 1 : 0, 0, copy};
  return error;
}

mtf_error* take_status(TF_Status* status) {
  mtf_error* error = status->code == 0 ? nullptr : make_error(status->code, status->message);
  mtf_status_clear(status);
  return error;
}

}  // namespace mtf

extern "C" void mtf_error_free(mtf_error* error) {
  if (error == nullptr || error == &mtf::no_memory) return;
  std::free(error->message);
  std::free(error);
}
