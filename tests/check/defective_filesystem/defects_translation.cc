// Defects of translate_name.
#include <cstdlib>
#include <cstring>
#include <string>
#include <string_view>

#include "defects.h"

namespace {

using defective::original;

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

// What the one defect of this process is about.
struct Mistranslated {
  const char* end;  // URIs that end so
  const char* name;  // become this; NULL is returned as it is
};
Mistranslated mistranslated;

char* mistranslate_one(const TF_Filesystem* filesystem, const char* uri) {
  if (!ends_with(uri, mistranslated.end)) return original.filesystem.translate_name(filesystem, uri);
  return mistranslated.name == nullptr ? nullptr : strdup(mistranslated.name);
}

void mistranslate(defective::Tables& tables, const char* end, const char* name) {
  mistranslated = {end, name};
  tables.filesystem.translate_name = mistranslate_one;
}

// Takes %2F for a slash.
char* decode(const TF_Filesystem* filesystem, const char* uri) {
  std::string decoded = uri;
  const size_t at = decoded.find("%2F");
  if (at != std::string::npos) decoded.replace(at, 3, "/");
  return original.filesystem.translate_name(filesystem, decoded.c_str());
}

// Keeps a copy of every third long name for ever.
char* hoard(const TF_Filesystem* filesystem, const char* uri) {
  static int calls = 0;
  if (std::strlen(uri) > 8000 && ++calls % 3 == 0) static_cast<void>(!strdup(uri));
  return original.filesystem.translate_name(filesystem, uri);
}

}  // namespace

DEFECTS(translation) = {
    {"FS-139", [](Tables& tables) { mistranslate(tables, "a/b.c", nullptr); }},
    {"FS-140", [](Tables& tables) { mistranslate(tables, "defect://", nullptr); }},
    {"FS-143", [](Tables& tables) { mistranslate(tables, "defect:////", "/elsewhere"); }},
    {"FS-144", [](Tables& tables) { mistranslate(tables, "/./a//b/../c", "/elsewhere"); }},
    {"FS-145", [](Tables& tables) { mistranslate(tables, "://h/../../x", "../x"); }},
    {"FS-146", [](Tables& tables) { mistranslate(tables, "/D/", "/elsewhere"); }},
    {"FS-148", [](Tables& tables) { tables.filesystem.translate_name = decode; }},
    {"FS-149", [](Tables& tables) { tables.filesystem.translate_name = hoard; }},
};
