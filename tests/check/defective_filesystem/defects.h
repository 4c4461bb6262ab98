// What a defect of the filesystem fixture can change, and how one is written.
//
// The fixture is a reference plugin, the one in memory or (../defective_local_filesystem) the one of
// the local disk, except for the one defect that the environment variable
// MODULAR_TF_FIXTURE_DEFECT names by the check that must find it. A file defects_GROUP.cc lists
// those of the checks of one group:
//
//   DEFECTS(reading) = {
//       {"FS-156", [](Tables& tables) {
//          tables.reading.read = [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
//                                   char* buffer, TF_Status* status) -> int64_t {
//            const int64_t got = original.reading.read(file, offset, n, buffer, status);
//            if (got == 4) buffer[3] = 'x';
//            return got;
//          };
//        }},
//   };
#pragma once

#include "chosen_defect.h"
#include "modular_tf/filesystem.h"
#include "modular_tf/status.h"

namespace defective {

// All that the reference plugin registered; the host sees what the defect makes of it. The tables
// and the scheme lie in memory of info.plugin_memory_allocate.
struct Tables {
  TF_FilesystemPluginInfo& info;
  TF_FilesystemPluginOps& registration;  // of the one scheme
  TF_FilesystemOps& filesystem;
  TF_RandomAccessFileOps& reading;
  TF_WritableFileOps& writing;
  TF_ReadOnlyMemoryRegionOps& region;
};

// The reference plugin's own functions, for defects that call on.
struct Originals {
  TF_FilesystemOps filesystem;
  TF_RandomAccessFileOps reading;
  TF_WritableFileOps writing;
  TF_ReadOnlyMemoryRegionOps region;
};
extern Originals original;

}  // namespace defective
