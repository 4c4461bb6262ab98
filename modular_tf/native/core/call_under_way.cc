#include "call_under_way.h"

#include <cstdlib>
#include <cstring>

#include "owned_error.h"

extern "C" const mtf_plugin* mtf_plugin_new(const char* name, const char* path,
                                            const char* record) {
  auto* plugin = static_cast<mtf_plugin*>(std::malloc(sizeof(mtf_plugin)));
  const mtf_plugin made = {strdup(name), strdup(path), strdup(record)};
  if (plugin == nullptr || made.name == nullptr || made.path == nullptr || made.record == nullptr) {
    return mtf::fail_with(mtf::make_error(TF_RESOURCE_EXHAUSTED, "no memory for the name of a plugin"));
  }
  *plugin = made;
  return plugin;
}
