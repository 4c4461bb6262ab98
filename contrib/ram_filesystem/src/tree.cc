#include "tree.h"

#include <algorithm>
#include <mutex>
#include <utility>

namespace ram {
namespace {

constexpr std::string_view kPrefix = MTF_RAM_SCHEME "://";

void take(std::string_view name, std::vector<std::string_view>& names) {
  if (name.empty() || name == ".") return;
  if (name != "..") return names.push_back(name);
  if (!names.empty()) names.pop_back();
}

std::string_view without_scheme(std::string_view uri) {
  return uri.substr(0, kPrefix.size()) == kPrefix ? uri.substr(kPrefix.size()) : uri;
}

using ReadLock = std::shared_lock<std::shared_mutex>;
using WriteLock = std::unique_lock<std::shared_mutex>;

Directory* directory_of(const Entry& entry) {
  const auto* pointer = std::get_if<DirectoryPointer>(&entry);
  return pointer == nullptr ? nullptr : pointer->get();
}

const Content* content_of(const Entry& entry) {
  const auto* pointer = std::get_if<FilePointer>(&entry);
  return pointer == nullptr ? nullptr : pointer->get();
}

// Moves the directories below `directory` to `doomed`; files go at once.
void unhook(Directory& directory, std::vector<DirectoryPointer>& doomed) {
  for (auto& child : directory.children) {
    if (auto* below = std::get_if<DirectoryPointer>(&child.second)) {
      doomed.push_back(std::move(*below));
    }
  }
  directory.children.clear();
}

Facts facts_of(const Entry& entry) {
  if (const Directory* directory = directory_of(entry)) return {0, directory->mtime_nsec, true};
  const Snapshot now = content_of(entry)->snapshot();
  return {static_cast<int64_t>(now.length), now.mtime_nsec, false};
}

}  // namespace

std::vector<std::string_view> components(std::string_view path) {
  std::vector<std::string_view> names;
  while (!path.empty()) {
    const size_t end = std::min(path.find('/'), path.size());
    take(path.substr(0, end), names);
    path.remove_prefix(std::min(end + 1, path.size()));
  }
  return names;
}

std::string canonical_path(std::string_view uri) {
  std::string path;
  for (std::string_view name : components(without_scheme(uri))) path.append("/").append(name);
  return path.empty() ? "/" : path;
}

Directory::Directory() : mtime_nsec(wall_clock_nanoseconds()) {}

// Level by level, not by recursion: a deep tree must not exhaust the stack.
Directory::~Directory() {
  std::vector<DirectoryPointer> doomed;
  unhook(*this, doomed);
  while (!doomed.empty()) {
    const DirectoryPointer last = std::move(doomed.back());
    doomed.pop_back();
    unhook(*last, doomed);
  }
}

Fault Tree::find(const Names& names, const Entry*& entry) const {
  entry = &root_;
  for (std::string_view name : names) {
    const Directory* directory = directory_of(*entry);
    if (directory == nullptr) return Fault::kParentIsFile;
    const auto child = directory->children.find(name);
    if (child == directory->children.end()) return Fault::kMissing;
    entry = &child->second;
  }
  return Fault::kNone;
}

// For any path but the root.
Fault Tree::find_place(const Names& names, Place& place) {
  const Entry* parent = nullptr;
  const Fault fault = find(Names(names.begin(), names.end() - 1), parent);
  if (fault != Fault::kNone) return fault;
  place.parent = directory_of(*parent);
  if (place.parent == nullptr) return Fault::kParentIsFile;
  place.name = names.back();
  const auto child = place.parent->children.find(place.name);
  place.entry = child == place.parent->children.end() ? nullptr : &child->second;
  return Fault::kNone;
}

// A place that is free or holds a file.
Fault Tree::place_for_file(std::string_view path, Place& place) {
  const Names names = components(path);
  if (names.empty()) return Fault::kIsDirectory;
  const Fault fault = find_place(names, place);
  if (fault != Fault::kNone) return fault;
  const bool is_directory = place.entry != nullptr && directory_of(*place.entry) != nullptr;
  return is_directory ? Fault::kIsDirectory : Fault::kNone;
}

// A place that holds a file.
Fault Tree::find_file(std::string_view path, Place& place) {
  const Fault fault = place_for_file(path, place);
  if (fault != Fault::kNone) return fault;
  return place.entry == nullptr ? Fault::kMissing : Fault::kNone;
}

void Tree::put(const Place& place, Entry entry) {
  place.parent->children.insert_or_assign(std::string(place.name), std::move(entry));
  place.parent->mtime_nsec = wall_clock_nanoseconds();
}

// Leaves the name free. What it held is the caller's, who destroys it without the lock.
Entry Tree::take(const Place& place) {
  Entry entry = std::move(*place.entry);
  place.parent->children.erase(place.parent->children.find(place.name));
  place.parent->mtime_nsec = wall_clock_nanoseconds();
  return entry;
}

Fault Tree::open_file(std::string_view path, FilePointer& file) const {
  const ReadLock lock(mutex_);
  const Entry* entry = nullptr;
  const Fault fault = find(components(path), entry);
  if (fault != Fault::kNone) return fault;
  if (directory_of(*entry) != nullptr) return Fault::kIsDirectory;
  file = std::get<FilePointer>(*entry);
  return Fault::kNone;
}

Fault Tree::create_file(std::string_view path, bool anew, FilePointer& file) {
  FilePointer replaced;  // outlives the lock: freeing a big file takes time
  const WriteLock lock(mutex_);
  Place place;
  const Fault fault = place_for_file(path, place);
  if (fault != Fault::kNone) return fault;
  if (place.entry != nullptr) replaced = std::get<FilePointer>(*place.entry);
  if (!anew && replaced != nullptr) {
    file = replaced;
    return Fault::kNone;
  }
  file = std::make_shared<Content>();
  put(place, file);
  return Fault::kNone;
}

Fault Tree::make_directory(std::string_view path) {
  const Names names = components(path);
  if (names.empty()) return Fault::kExists;
  const WriteLock lock(mutex_);
  Place place;
  const Fault fault = find_place(names, place);
  if (fault != Fault::kNone) return fault;
  if (place.entry != nullptr) return Fault::kExists;
  put(place, std::make_unique<Directory>());
  return Fault::kNone;
}

// Makes the missing part beside the tree, then hangs it in: all or none, even out of memory.
Fault Tree::make_directories(std::string_view path) {
  const Names names = components(path);
  const WriteLock lock(mutex_);
  Directory* at = directory_of(root_);
  size_t depth = 0;
  for (; depth < names.size(); ++depth) {
    const auto child = at->children.find(names[depth]);
    if (child == at->children.end()) break;
    at = directory_of(child->second);
    const bool is_last = depth + 1 == names.size();
    if (at == nullptr) return is_last ? Fault::kNotDirectory : Fault::kParentIsFile;
  }
  if (depth == names.size()) return Fault::kNone;
  auto made = std::make_unique<Directory>();
  for (size_t i = names.size() - 1; i > depth; --i) {
    auto above = std::make_unique<Directory>();
    above->children.emplace(names[i], std::move(made));
    made = std::move(above);
  }
  put({at, names[depth], nullptr}, std::move(made));
  return Fault::kNone;
}

Fault Tree::delete_file(std::string_view path) {
  Entry deleted;
  const WriteLock lock(mutex_);
  Place place;
  const Fault fault = find_file(path, place);
  if (fault == Fault::kNone) deleted = take(place);
  return fault;
}

Fault Tree::delete_directory(std::string_view path) {
  const Names names = components(path);
  if (names.empty()) return Fault::kIsRoot;
  const WriteLock lock(mutex_);
  Place place;
  const Fault fault = find_place(names, place);
  if (fault != Fault::kNone) return fault;
  if (place.entry == nullptr) return Fault::kMissing;
  const Directory* directory = directory_of(*place.entry);
  if (directory == nullptr) return Fault::kNotDirectory;
  if (!directory->children.empty()) return Fault::kNotEmpty;
  take(place);
  return Fault::kNone;
}

Fault Tree::delete_tree(std::string_view path) {
  const Names names = components(path);
  if (names.empty()) return Fault::kIsRoot;
  Entry deleted;
  const WriteLock lock(mutex_);
  Place place;
  const Fault fault = find_place(names, place);
  if (fault != Fault::kNone) return fault;
  if (place.entry == nullptr) return Fault::kMissing;
  deleted = take(place);
  return Fault::kNone;
}

Fault Tree::rename_file(std::string_view source, std::string_view target) {
  FilePointer replaced;
  const WriteLock lock(mutex_);
  Place from;
  Place to;
  Fault fault = find_file(source, from);
  if (fault == Fault::kNone) fault = place_for_file(target, to);
  if (fault != Fault::kNone || from.entry == to.entry) return fault;
  if (to.entry != nullptr) replaced = std::get<FilePointer>(*to.entry);
  put(to, std::get<FilePointer>(*from.entry));  // may throw; the source is still in its place
  take(from);
  return Fault::kNone;
}

Fault Tree::copy_file(std::string_view source, std::string_view target) {
  FilePointer replaced;
  const WriteLock lock(mutex_);
  Place from;
  Place to;
  Fault fault = find_file(source, from);
  if (fault == Fault::kNone) fault = place_for_file(target, to);
  if (fault != Fault::kNone || from.entry == to.entry) return fault;
  auto copy = std::make_shared<Content>();
  copy->share(*std::get<FilePointer>(*from.entry));
  if (to.entry != nullptr) replaced = std::get<FilePointer>(*to.entry);
  put(to, std::move(copy));
  return Fault::kNone;
}

Fault Tree::describe(std::string_view path, Facts& facts) const {
  const ReadLock lock(mutex_);
  const Entry* entry = nullptr;
  const Fault fault = find(components(path), entry);
  if (fault == Fault::kNone) facts = facts_of(*entry);
  return fault;
}

Fault Tree::list(std::string_view path, std::vector<std::string>& names) const {
  const ReadLock lock(mutex_);
  const Entry* entry = nullptr;
  const Fault fault = find(components(path), entry);
  if (fault != Fault::kNone) return fault;
  const Directory* directory = directory_of(*entry);
  if (directory == nullptr) return Fault::kNotDirectory;
  for (const auto& child : directory->children) names.push_back(child.first);
  return Fault::kNone;
}

std::vector<Fault> Tree::probe(const std::vector<std::string_view>& paths) const {
  const ReadLock lock(mutex_);
  std::vector<Fault> faults;
  const Entry* entry = nullptr;
  for (std::string_view path : paths) faults.push_back(find(components(path), entry));
  return faults;
}

}  // namespace ram
