// The names: directories that hold files and directories.
//
// One lock for the whole tree: an operation on names is short, and each sees the tree as a whole,
// so renames and deletions of whole trees are atomic. The bytes of files are outside of it.
#pragma once

#include <map>
#include <memory>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "content.h"

namespace ram {

// The names in `path`: "." and empty ones dropped, ".." resolved and never above the root.
// They point into `path`.
std::vector<std::string_view> components(std::string_view path);

// The canonical path of a URI: "ram://a//b/../c", "ram:///a/c" and "/a/c" all become "/a/c". What
// stands in the host's place is the first name, so that ram://a and ram://b differ.
std::string canonical_path(std::string_view uri);

struct Directory;
using FilePointer = std::shared_ptr<Content>;
using DirectoryPointer = std::unique_ptr<Directory>;
using Entry = std::variant<DirectoryPointer, FilePointer>;

struct Directory {
  Directory();
  ~Directory();

  std::map<std::string, Entry, std::less<>> children;
  int64_t mtime_nsec;  // last change of the names in it
};

struct Facts {
  int64_t length = 0;
  int64_t mtime_nsec = 0;
  bool is_directory = false;
};

// Paths are as components takes them. [any thread]
class Tree {
 public:
  Fault open_file(std::string_view path, FilePointer& file) const;
  // `anew`: a new file takes the place of an old one; whoever has that open keeps it.
  Fault create_file(std::string_view path, bool anew, FilePointer& file);

  Fault make_directory(std::string_view path);
  Fault make_directories(std::string_view path);  // all or none

  Fault delete_file(std::string_view path);
  Fault delete_directory(std::string_view path);
  Fault delete_tree(std::string_view path);

  Fault rename_file(std::string_view source, std::string_view target);
  Fault copy_file(std::string_view source, std::string_view target);

  Fault describe(std::string_view path, Facts& facts) const;
  Fault list(std::string_view path, std::vector<std::string>& names) const;
  std::vector<Fault> probe(const std::vector<std::string_view>& paths) const;  // at one moment

 private:
  using Names = std::vector<std::string_view>;
  // A place in the tree for an entry, taken or not.
  struct Place {
    Directory* parent = nullptr;
    std::string_view name;
    Entry* entry = nullptr;  // NULL: free
  };

  // The callers hold the lock.
  Fault find(const Names& names, const Entry*& entry) const;
  Fault find_place(const Names& names, Place& place);
  Fault find_file(std::string_view path, Place& place);
  Fault place_for_file(std::string_view path, Place& place);
  static void put(const Place& place, Entry entry);
  static Entry take(const Place& place);

  mutable std::shared_mutex mutex_;
  Entry root_ = std::make_unique<Directory>();
};

}  // namespace ram
