// Defects of the configuration.
#include <cstdlib>
#include <cstring>

#include "defects.h"

namespace {

using defective::original;

constexpr char kNumber[] = "capacity_bytes";

// Lists the last option twice.
void list_one_twice(const TF_Filesystem* filesystem, TF_Filesystem_Option** options, int* count,
                    TF_Status* status) {
  original.filesystem.get_filesystem_configuration(filesystem, options, count, status);
  const char* name = (*options)[*count - 1].name;
  TF_Filesystem_Option* again = nullptr;
  original.filesystem.get_filesystem_configuration_option(filesystem, name, &again, status);
  const size_t size = sizeof(TF_Filesystem_Option);
  *options = static_cast<TF_Filesystem_Option*>(
      std::realloc(*options, size * static_cast<size_t>(*count + 1)));
  (*options)[(*count)++] = *again;
  std::free(again);  // what it points to is listed now
}

void refuse_nothing(const TF_Filesystem* filesystem, const TF_Filesystem_Option* options, int count,
                    TF_Status* status) {
  if (count == 0) return TF_SetStatus(status, TF_INVALID_ARGUMENT, "no options");
  original.filesystem.set_filesystem_configuration(filesystem, options, count, status);
}

void fail_at_unknown(const TF_Filesystem* filesystem, const char* key,
                     TF_Filesystem_Option** option, TF_Status* status) {
  original.filesystem.get_filesystem_configuration_option(filesystem, key, option, status);
  if (TF_GetCode(status) == TF_NOT_FOUND) TF_SetStatus(status, TF_INTERNAL, "no idea");
}

// What comes of a pointer to a number of the caller's, which is then used for something else.
bool is_overwritten;

void set_and_lose(const TF_Filesystem* filesystem, const TF_Filesystem_Option* options, int count,
                  TF_Status* status) {
  original.filesystem.set_filesystem_configuration(filesystem, options, count, status);
  const bool is_number = count == 1 && std::strcmp(options[0].name, kNumber) == 0;
  if (is_number && TF_GetCode(status) == TF_OK) is_overwritten = true;
}

void list_what_is_left(const TF_Filesystem* filesystem, TF_Filesystem_Option** options, int* count,
                       TF_Status* status) {
  original.filesystem.get_filesystem_configuration(filesystem, options, count, status);
  for (int i = 0; i < *count && is_overwritten; ++i) {
    const TF_Filesystem_Option& option = (*options)[i];
    if (std::strcmp(option.name, kNumber) == 0) option.value->values[0].int_val = 0xDDDD;
  }
}

}  // namespace

DEFECTS(settings) = {
    {"FS-309",
     [](Tables& tables) { tables.filesystem.get_filesystem_configuration = list_one_twice; }},
    {"FS-310",
     [](Tables& tables) { tables.filesystem.set_filesystem_configuration = refuse_nothing; }},
    {"FS-311",
     [](Tables& tables) {
       tables.filesystem.get_filesystem_configuration_option = fail_at_unknown;
     }},
    {"FS-312",
     [](Tables& tables) {
       tables.filesystem.set_filesystem_configuration = set_and_lose;
       tables.filesystem.get_filesystem_configuration = list_what_is_left;
     }},
    {"FS-313",
     [](Tables& tables) {
       tables.filesystem.get_filesystem_configuration_keys =
           [](const TF_Filesystem*, char**, int* count, TF_Status* status) {
             *count = 0;
             TF_SetStatus(status, TF_OK, "");
           };
     }},
};
