// Files with the wrong content.
#pragma once

#include <string_view>

#include "defects.h"

namespace defective {

using Opener = void (*)(const TF_Filesystem*, const char*, TF_WritableFile*, TF_Status*);

// Opens a file, appends to it and closes it, by the reference plugin's own functions.
inline void write_by(Opener open, const TF_Filesystem* filesystem, const char* path,
                     std::string_view bytes, TF_Status* status) {
  TF_WritableFile file{};
  open(filesystem, path, &file, status);
  if (TF_GetCode(status) != TF_OK) return;
  original.writing.append(&file, bytes.data(), bytes.size(), status);
  original.writing.close(&file, status);
  original.writing.cleanup(&file);
}

// Makes the file hold nothing but `bytes`.
inline void overwrite(const TF_Filesystem* filesystem, const char* path, std::string_view bytes,
                      TF_Status* status) {
  write_by(original.filesystem.new_writable_file, filesystem, path, bytes, status);
}

// Adds one byte.
inline void lengthen(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  write_by(original.filesystem.new_appendable_file, filesystem, path, "x", status);
}

}  // namespace defective
