/* What the plugin is going to register: the well-behaved tables, as a variant changed them. */
#pragma once

#include "modular_tf/filesystem.h"

enum { PLAN_MAX_SCHEMES = 2 };

typedef struct scheme_plan {
  const char* scheme;
  /* Versions, sizes and which tables are there; the pointers lead to the members below. */
  TF_FilesystemPluginOps entry;
  TF_FilesystemOps filesystem;
  TF_RandomAccessFileOps random_access_file;
  TF_WritableFileOps writable_file;
  TF_ReadOnlyMemoryRegionOps read_only_memory_region;
} scheme_plan;

typedef struct registration_plan {
  size_t num_schemes;
  scheme_plan schemes[PLAN_MAX_SCHEMES];
  void* (*allocate)(size_t size);
  void (*free)(void* block);
  bool without_ops;
  void (*registered)(const TF_FilesystemPluginInfo* info); /* called last; may be NULL */
} registration_plan;

/* One way to differ from the well-behaved plugin. */
typedef struct variant {
  const char* name;
  void (*apply)(registration_plan* plan);
} variant;

/* The variants of each file, ended by a NULL name. */
extern const variant registration_variants[];
extern const variant table_variants[];
extern const variant file_variants[];
extern const variant filesystem_variants[];
extern const variant listing_variants[];

/* Fills `info` as the variant `name` does; "good" changes nothing. An unknown name aborts. */
void register_fixture(TF_FilesystemPluginInfo* info, const char* name, const char* scheme);
