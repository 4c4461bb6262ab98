// Operations that answer with another code than they should, for some paths.
#pragma once

#include <tuple>

#include "defects.h"
#include "paths.h"

namespace defective {

// What the one defect of this process is about.
struct Misjudged {
  const char* names;  // paths that end in these names
  TF_Code code;       // are answered with this code, and nothing is done
};
inline Misjudged misjudged;

template <auto Slot, class... Rest>
auto misjudging(void (*)(const TF_Filesystem*, const char*, Rest...)) {
  return [](const TF_Filesystem* filesystem, const char* path, Rest... rest) {
    if (ends_in(path, misjudged.names)) {
      TF_Status* status = std::get<sizeof...(Rest) - 1>(std::tie(rest...));
      return TF_SetStatus(status, misjudged.code, path);
    }
    (original.filesystem.*Slot)(filesystem, path, rest...);
  };
}

// Makes a slot, whose second argument is a path and whose last one is a status, misjudge.
template <auto Slot>
void misjudge(Tables& tables, const char* names, TF_Code code) {
  misjudged = {names, code};
  tables.filesystem.*Slot = misjudging<Slot>(tables.filesystem.*Slot);
}

}  // namespace defective
