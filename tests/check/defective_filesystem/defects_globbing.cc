// Defects of get_matching_paths. The reference plugin leaves the slot to the host, so each of them
// is a defect of a glob that is right otherwise.
#include <fnmatch.h>

#include "defects.h"
#include "listings.h"
#include "paths.h"

namespace {

using namespace defective;

using Uris = std::vector<std::string>;

bool has_magic(const std::string& level) {
  return level.find_first_of("*?[\\") != std::string::npos;
}

std::string name_of(const TF_Filesystem* filesystem, const std::string& uri) {
  char* name = original.filesystem.translate_name(filesystem, uri.c_str());
  const std::string copy = name;
  std::free(name);
  return copy;
}

// What matches one level below `parent`.
void expand(const TF_Filesystem* filesystem, const std::string& parent, const std::string& level,
            Uris& found) {
  TF_Status* status = TF_NewStatus();
  if (has_magic(level)) {
    const std::string path = name_of(filesystem, parent);
    for (const std::string& name : children_of(filesystem, path.c_str(), status)) {
      if (fnmatch(level.c_str(), name.c_str(), FNM_PATHNAME) == 0) {
        found.push_back(parent + "/" + name);
      }
    }
  } else {
    const std::string uri = parent + "/" + level;
    original.filesystem.path_exists(filesystem, name_of(filesystem, uri).c_str(), status);
    if (TF_GetCode(status) == TF_OK) found.push_back(uri);
  }
  TF_DeleteStatus(status);
}

// Where the host part of a URI begins; 0 for a plain path.
size_t start_of_host(const std::string& pattern) {
  const size_t separator = pattern.find("://");
  return separator == std::string::npos ? 0 : separator + 3;
}

bool has_wild_host(const std::string& pattern) {
  const size_t start = start_of_host(pattern);
  return start > 0 && has_magic(pattern.substr(start, pattern.find('/', start) - start));
}

Uris matches(const TF_Filesystem* filesystem, const std::string& pattern) {
  size_t end = pattern.find('/', start_of_host(pattern));
  if (end == std::string::npos) return {};
  Uris found{pattern.substr(0, end)};
  while (end != std::string::npos) {
    const size_t start = end + 1;
    end = pattern.find('/', start);
    Uris next;
    for (const std::string& parent : found) {
      expand(filesystem, parent, pattern.substr(start, end - start), next);
    }
    found = next;
  }
  return found;
}

// Finds what matches, and lets `change` spoil it where the pattern ends in `about`.
template <class Change>
int spoiled(const TF_Filesystem* filesystem, const char* pattern, const char* about,
            char*** entries, TF_Status* status, Change change) {
  if (has_wild_host(pattern)) {
    TF_SetStatus(status, TF_INVALID_ARGUMENT, pattern);
    return -1;
  }
  Uris found = matches(filesystem, pattern);
  TF_SetStatus(status, TF_OK, "");
  if (ends_in(pattern, about)) change(found);
  return give_out(found, entries);
}

int lose_a_match(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
                 TF_Status* status) {
  return spoiled(filesystem, pattern, "a*", entries, status,
                 [](Uris& found) { found.pop_back(); });
}

int fail_without_a_match(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
                         TF_Status* status) {
  if (ends_in(pattern, "n*")) {
    TF_SetStatus(status, TF_NOT_FOUND, pattern);
    return -1;
  }
  return spoiled(filesystem, pattern, "n*", entries, status, [](Uris&) {});
}

int lose_a_plain_path(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
                      TF_Status* status) {
  return spoiled(filesystem, pattern, "F", entries, status, [](Uris& found) { found.clear(); });
}

int ignore_negation(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
                    TF_Status* status) {
  return spoiled(filesystem, pattern, "x[^a]", entries, status, [&](Uris& found) {
    found.push_back(found.front().substr(0, found.front().size() - 1) + "a");
  });
}

int cross_a_level(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
                  TF_Status* status) {
  return spoiled(filesystem, pattern, "*/b*", entries, status, [](Uris& found) {
    found.push_back(found.front().substr(0, found.front().rfind('/')) + "/d/b2");
  });
}

int find_twice(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
               TF_Status* status) {
  return spoiled(filesystem, pattern, "m*", entries, status,
                 [](Uris& found) { found.push_back(found.front()); });
}

int fail_with_ok(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
                 TF_Status* status) {
  const int count = spoiled(filesystem, pattern, "x*", entries, status, [](Uris&) {});
  if (!ends_in(pattern, "c1/x*")) return count;
  std::free(*entries);
  *entries = nullptr;
  return -1;
}

int search_every_host(const TF_Filesystem* filesystem, const char* pattern, char*** entries,
                      TF_Status* status) {
  if (!has_wild_host(pattern)) {
    return spoiled(filesystem, pattern, "", entries, status, [](Uris&) {});
  }
  TF_SetStatus(status, TF_OK, "");
  return give_out({"defect://somewhere/x"}, entries);
}

}  // namespace

DEFECTS(globbing) = {
    {"FS-293", [](Tables& tables) { tables.filesystem.get_matching_paths = lose_a_match; }},
    {"FS-294", [](Tables& tables) { tables.filesystem.get_matching_paths = fail_without_a_match; }},
    {"FS-295", [](Tables& tables) { tables.filesystem.get_matching_paths = lose_a_plain_path; }},
    {"FS-296", [](Tables& tables) { tables.filesystem.get_matching_paths = ignore_negation; }},
    {"FS-297", [](Tables& tables) { tables.filesystem.get_matching_paths = cross_a_level; }},
    {"FS-298", [](Tables& tables) { tables.filesystem.get_matching_paths = find_twice; }},
    {"FS-299", [](Tables& tables) { tables.filesystem.get_matching_paths = fail_with_ok; }},
    {"FS-300", [](Tables& tables) { tables.filesystem.get_matching_paths = search_every_host; }},
};
