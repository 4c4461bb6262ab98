#include "error.h"

#include <cstdlib>
#include <cstring>

#include "guard.h"

namespace mtf {
namespace {

char no_memory_text[] = "out of memory while reporting an error";
mtf_error no_memory = {8, 0, 0, no_memory_text, 0};

// All fields are set here: nobody may change an error later, which may be the one that all share.
mtf_error* make(mtf_error fields, const char* message) {
  auto* error = static_cast<mtf_error*>(std::malloc(sizeof(mtf_error)));
  fields.message = strdup(message != nullptr ? message : "");
  if (error == nullptr || fields.message == nullptr) {
    std::free(error);
    std::free(fields.message);
    return &no_memory;
  }
  *error = fields;
  return error;
}

}  // namespace

mtf_error* make_error(int code, const char* message, bool thrown) {
  return make({code, thrown ? 1 : 0, 0, nullptr, 0}, message);
}

mtf_error* make_closed_error(const char* message) { return make({9, 0, 1, nullptr, 0}, message); }

mtf_error* make_rule_error(int rule, const char* message) {
  return make({13, 0, 0, nullptr, rule}, message);
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
