// The strings that a slot returns: those of a plugin, copied and given back to its own free, and those that
// the host returns in its place.
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

// Makes the array of `count` names, at most 2^24, which lie one behind the other in `size` bytes that another
// process may change meanwhile; array and names are malloc's. Returns how many; -1: there are fewer names in the
// bytes, or there is no memory.
int split_names(const char* bytes, size_t size, int64_t count, char*** entries);

}  // namespace mtf
