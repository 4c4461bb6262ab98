// The tables of functions that the bridge hands to TensorFlow.
#pragma once

#include <cstddef>

#include "modular_tf/filesystem.h"

namespace mtf::bridge {

// The slots before the transactions: what the tables of 264 and of 216 bytes have in common.
constexpr size_t kCommonTable = offsetof(TF_FilesystemOps_V221, start_transaction);

// Tables of files, of bridge_reader.cc, bridge_writer.cc and bridge_files.cc.
TF_RandomAccessFileOps reader_table();
TF_WritableFileOps writer_table();
TF_ReadOnlyMemoryRegionOps region_table();

// Opens a file of TensorFlow's; sets the wrapper's pointer where the status is OK.
void open_reader(const TF_Filesystem*, const char* path, TF_RandomAccessFile* file, TF_Status*);
void open_writer(const TF_Filesystem*, const char* path, TF_WritableFile* file, TF_Status*);
void open_appender(const TF_Filesystem*, const char* path, TF_WritableFile* file, TF_Status*);
void open_region(const TF_Filesystem*, const char* path, TF_ReadOnlyMemoryRegion* region,
                 TF_Status*);

// Closes the files that are open for writing, when no call of TensorFlow's comes through any more.
void close_writers();

// Fills in the entry of a scheme; a table that there is no memory for stays NULL, which TensorFlow
// refuses.
void fill_tables(TF_FilesystemPluginOps* entry, const char* scheme);

}  // namespace mtf::bridge
