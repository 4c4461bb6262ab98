// Defects of get_children.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <thread>

#include "defects.h"
#include "listings.h"
#include "paths.h"

namespace {

using namespace defective;

using Names = std::vector<std::string>;

// Lists as the reference plugin does, but for one directory, whose names are changed.
template <class Change>
int changed(const TF_Filesystem* filesystem, const char* path, const char* about,
            char*** entries, TF_Status* status, Change change) {
  if (!ends_in(path, about)) {
    return original.filesystem.get_children(filesystem, path, entries, status);
  }
  Names names = children_of(filesystem, path, status);
  change(names);
  return give_out(names, entries);
}

int forget_a_directory(const TF_Filesystem* filesystem, const char* path, char*** entries,
                       TF_Status* status) {
  return changed(filesystem, path, "family", entries, status, [](Names& names) {
    names.erase(std::remove(names.begin(), names.end(), "left"), names.end());
  });
}

int list_itself(const TF_Filesystem* filesystem, const char* path, char*** entries,
                TF_Status* status) {
  return changed(filesystem, path, "D", entries, status,
                 [](Names& names) { names.emplace_back("D"); });
}

int take_a_file_for_empty(const TF_Filesystem* filesystem, const char* path, char*** entries,
                          TF_Status* status) {
  const int count = original.filesystem.get_children(filesystem, path, entries, status);
  if (!ends_in(path, "F")) return count;
  TF_SetStatus(status, TF_OK, "");
  return 0;
}

int take_nothing_for_empty(const TF_Filesystem* filesystem, const char* path, char*** entries,
                           TF_Status* status) {
  const int count = original.filesystem.get_children(filesystem, path, entries, status);
  if (!ends_in(path, "X/y")) return count;
  TF_SetStatus(status, TF_OK, "");
  return 0;
}

int miss_below_file(const TF_Filesystem* filesystem, const char* path, char*** entries,
                    TF_Status* status) {
  const int count = original.filesystem.get_children(filesystem, path, entries, status);
  if (ends_in(path, "F/x")) TF_SetStatus(status, TF_NOT_FOUND, path);
  return count;
}

int fail_with_zero(const TF_Filesystem* filesystem, const char* path, char*** entries,
                   TF_Status* status) {
  const int count = original.filesystem.get_children(filesystem, path, entries, status);
  return ends_in(path, "X") ? 0 : count;
}

int leave_a_null(const TF_Filesystem* filesystem, const char* path, char*** entries,
                 TF_Status* status) {
  const int count = original.filesystem.get_children(filesystem, path, entries, status);
  if (ends_in(path, "counted") && count > 0) {
    std::free((*entries)[0]);
    (*entries)[0] = nullptr;
  }
  return count;
}

int list_the_parent(const TF_Filesystem* filesystem, const char* path, char*** entries,
                    TF_Status* status) {
  return changed(filesystem, path, "bare", entries, status,
                 [](Names& names) { names.emplace_back(".."); });
}

int list_twice(const TF_Filesystem* filesystem, const char* path, char*** entries,
               TF_Status* status) {
  return changed(filesystem, path, "only_once", entries, status,
                 [](Names& names) { names.emplace_back("below"); });
}

int shorten_a_name(const TF_Filesystem* filesystem, const char* path, char*** entries,
                   TF_Status* status) {
  return changed(filesystem, path, "existing", entries, status,
                 [](Names& names) { names.back().pop_back(); });
}

int list_one_page(const TF_Filesystem* filesystem, const char* path, char*** entries,
                  TF_Status* status) {
  return changed(filesystem, path, "big", entries, status,
                 [](Names& names) { names.resize(names.size() / 2); });
}

int escape_blanks(const TF_Filesystem* filesystem, const char* path, char*** entries,
                  TF_Status* status) {
  return changed(filesystem, path, "strange", entries, status, [](Names& names) {
    for (std::string& name : names) std::replace(name.begin(), name.end(), ' ', '+');
  });
}

int leave_a_copy(const TF_Filesystem* filesystem, const char* path, char*** entries,
                 TF_Status* status) {
  const int count = original.filesystem.get_children(filesystem, path, entries, status);
  static int calls = 0;
  if (ends_in(path, "freed") && ++calls % 3 == 0) (*entries)[0] = strdup((*entries)[0]);
  return count;
}

std::atomic<int> listing_now{0};
std::atomic<bool> met{false};

// Whether another thread lists at the same time; the first waits for a second one.
bool meet_another() {
  constexpr auto kPatience = std::chrono::seconds(5);
  const auto latest = std::chrono::steady_clock::now() + kPatience;
  if (++listing_now > 1) met = true;
  while (!met && std::chrono::steady_clock::now() < latest) std::this_thread::yield();
  --listing_now;
  return met;
}

int lose_a_name_to_a_thread(const TF_Filesystem* filesystem, const char* path, char*** entries,
                            TF_Status* status) {
  return changed(filesystem, path, "shared", entries, status, [](Names& names) {
    if (meet_another()) names.pop_back();
  });
}

}  // namespace

DEFECTS(children) = {
    {"FS-279", [](Tables& tables) { tables.filesystem.get_children = forget_a_directory; }},
    {"FS-280", [](Tables& tables) { tables.filesystem.get_children = list_itself; }},
    {"FS-281", [](Tables& tables) { tables.filesystem.get_children = take_a_file_for_empty; }},
    {"FS-282", [](Tables& tables) { tables.filesystem.get_children = take_nothing_for_empty; }},
    {"FS-283", [](Tables& tables) { tables.filesystem.get_children = miss_below_file; }},
    {"FS-284", [](Tables& tables) { tables.filesystem.get_children = fail_with_zero; }},
    {"FS-285", [](Tables& tables) { tables.filesystem.get_children = leave_a_null; }},
    {"FS-286", [](Tables& tables) { tables.filesystem.get_children = list_the_parent; }},
    {"FS-287", [](Tables& tables) { tables.filesystem.get_children = list_twice; }},
    {"FS-288", [](Tables& tables) { tables.filesystem.get_children = shorten_a_name; }},
    {"FS-289", [](Tables& tables) { tables.filesystem.get_children = list_one_page; }},
    {"FS-290", [](Tables& tables) { tables.filesystem.get_children = escape_blanks; }},
    {"FS-291", [](Tables& tables) { tables.filesystem.get_children = leave_a_copy; }},
    {"FS-292", [](Tables& tables) { tables.filesystem.get_children = lose_a_name_to_a_thread; }},
};
