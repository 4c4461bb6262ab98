// The strings that a plugin returns: copied, then given back to the plugin's own free.
#pragma once

#include "filesystem.h"
#include "guard.h"

namespace mtf {

// An array of strings that a plugin made; a negative count says that it made none.
class PluginStrings {
 public:
  PluginStrings(const mtf_plugin* plugin, char** entries, int count, void (*plugin_free)(void*))
      : plugin_(plugin), entries_(entries), count_(count), free_(plugin_free) {}
  ~PluginStrings();
  PluginStrings(const PluginStrings&) = delete;
  PluginStrings& operator=(const PluginStrings&) = delete;

  // Reads each entry once: the plugin may change the array and the strings meanwhile.
  Error copy_to(mtf_strings* strings) const;

 private:
  const mtf_plugin* plugin_;
  char** entries_;
  int count_;
  void (*free_)(void*);
};

}  // namespace mtf
