// Defects of files that are written.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>

#include "defects.h"
#include "leaking.h"
#include "misjudging.h"
#include "open_paths.h"

namespace {

using defective::original;
using Append = decltype(TF_WritableFileOps::append);
using Tell = decltype(TF_WritableFileOps::tell);

// Follows writers, and replaces `append`.
void append_by(defective::Tables& tables, Append append) {
  defective::follow_writers(tables);
  tables.writing.append = append;
}

// Follows writers, and replaces `tell`.
void tell_by(defective::Tables& tables, Tell tell) {
  defective::follow_writers(tables);
  tables.writing.tell = tell;
}

// Files with this name are opened elsewhere.
template <const char* const& Name>
void mislay(defective::Tables& tables) {
  tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                           TF_WritableFile* file, TF_Status* status) {
    std::string opened = path;
    if (defective::ends_in(path, Name)) opened += "-elsewhere";
    original.filesystem.new_writable_file(filesystem, opened.c_str(), file, status);
  };
}

// Files with this name keep what is in them.
template <const char* const& Name>
void keep(defective::Tables& tables) {
  tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                           TF_WritableFile* file, TF_Status* status) {
    const auto open = defective::ends_in(path, Name) ? original.filesystem.new_appendable_file
                                                     : original.filesystem.new_writable_file;
    open(filesystem, path, file, status);
  };
}

constexpr const char* kCreated = "created";
constexpr const char* kGuarded = "guarded";
constexpr const char* kReplaced = "replaced";
constexpr const char* kEmptied = "emptied";
constexpr const char* kFollowed = "followed";
constexpr const char* kMixed = "mixed";

void call_no_room_internal(const TF_WritableFile* file, TF_Status* status) {
  const bool failed = TF_GetCode(status) != TF_OK;
  if (failed && defective::is_of(file, "full")) TF_SetStatus(status, TF_INTERNAL, "it failed");
}

std::string held;  // of the one file that is opened once

template <const char* const& Name>
void close_with_what_was_held(const TF_WritableFile* file, TF_Status* status) {
  if (defective::is_of(file, Name)) {
    original.writing.append(file, held.data(), held.size(), status);
    held.clear();
  }
  original.writing.close(file, status);
}

void find_no_place(const TF_Filesystem*, const char* path, TF_Status* status) {
  TF_SetStatus(status, TF_NOT_FOUND, (std::string("no store for ") + path).c_str());
}

}  // namespace

DEFECTS(writing) = {
    {"FS-170", [](Tables& tables) { mislay<kCreated>(tables); }},
    {"FS-171", [](Tables& tables) {  // a missing parent is a failed precondition
       misjudge<&TF_FilesystemOps::new_writable_file>(tables, "X/y", TF_FAILED_PRECONDITION);
     }},
    {"FS-172", [](Tables& tables) {  // a directory is not found
       misjudge<&TF_FilesystemOps::new_writable_file>(tables, "D", TF_NOT_FOUND);
     }},
    {"FS-173", [](Tables& tables) {  // a name below a file is a missing one
       misjudge<&TF_FilesystemOps::new_writable_file>(tables, "F/x", TF_NOT_FOUND);
     }},
    {"FS-174", [](Tables& tables) { keep<kReplaced>(tables); }},
    {"FS-175", [](Tables& tables) { keep<kEmptied>(tables); }},
    {"FS-176", [](Tables& tables) {  // the last byte is lost
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         if (is_of(file, "appended")) --n;
         original.writing.append(file, buffer, n, status);
       });
     }},
    {"FS-177", [](Tables& tables) {  // nothing cannot be appended
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         if (n == 0 && is_of(file, "unchanged")) {
           return TF_SetStatus(status, TF_INVALID_ARGUMENT, "no bytes");
         }
         original.writing.append(file, buffer, n, status);
       });
     }},
    {"FS-178", [](Tables& tables) {  // bytes end at a NUL
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         if (is_of(file, "inner")) n = strnlen(buffer, n);
         original.writing.append(file, buffer, n, status);
       });
     }},
    {"FS-179", [](Tables& tables) {  // it counts from 1
       tell_by(tables, [](const TF_WritableFile* file, TF_Status* status) -> int64_t {
         const int64_t position = original.writing.tell(file, status);
         return is_of(file, "told") ? position + 1 : position;
       });
     }},
    {"FS-180", [](Tables& tables) {  // to ask moves the position
       tell_by(tables, [](const TF_WritableFile* file, TF_Status* status) -> int64_t {
         const int64_t position = original.writing.tell(file, status);
         if (is_of(file, "told-twice")) original.writing.append(file, " ", 1, status);
         return position;
       });
     }},
    {"FS-181", [](Tables& tables) {  // a failure that is OK
       tell_by(tables, [](const TF_WritableFile* file, TF_Status* status) -> int64_t {
         const int64_t position = original.writing.tell(file, status);
         return is_of(file, "consistent") && position > 0 ? -1 : position;
       });
     }},
    {"FS-182", [](Tables& tables) {  // nobody sees anything before close
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         if (!is_of(file, "followed")) return original.writing.append(file, buffer, n, status);
         held.append(buffer, n);
         TF_SetStatus(status, TF_OK, "");
       });
       tables.writing.close = close_with_what_was_held<kFollowed>;
     }},
    {"FS-183", [](Tables& tables) {  // close forgets what came last
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         if (is_of(file, "finished") && std::string(buffer, n) == "end") n = 0;
         original.writing.append(file, buffer, n, status);
       });
     }},
    {"FS-184", [](Tables& tables) {  // cleanup of one of several crashes
       follow_writers(tables);
       tables.writing.cleanup = [](TF_WritableFile* file) {
         if (is_of(file, "ended-2")) std::abort();
         original.writing.cleanup(file);
       };
     }},
    {"FS-185", [](Tables& tables) {  // cleanup leaves a descriptor
       follow_writers(tables);
       tables.writing.cleanup = [](TF_WritableFile* file) {
         if (is_of(file, "abandoned")) leak_descriptor();
         original.writing.cleanup(file);
       };
     }},
    {"FS-336", [](Tables& tables) {  // close leaves a descriptor
       follow_writers(tables);
       tables.writing.close = [](const TF_WritableFile* file, TF_Status* status) {
         if (is_of(file, "written-often")) leak_descriptor();
         original.writing.close(file, status);
       };
     }},
    {"FS-186", [](Tables& tables) {  // close cleans up
       follow_writers(tables);
       tables.writing.close = [](const TF_WritableFile* file, TF_Status* status) {
         original.writing.close(file, status);
         if (is_of(file, "handle-0")) original.writing.cleanup(const_cast<TF_WritableFile*>(file));
       };
       tables.writing.cleanup = [](TF_WritableFile* file) {
         if (file->plugin_file != nullptr) original.writing.cleanup(file);
       };
     }},
    {"FS-187", [](Tables& tables) {  // nothing says that there is no room
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         original.writing.append(file, buffer, n, status);
         if (is_of(file, "full-at-close")) TF_SetStatus(status, TF_OK, "");
       });
       tables.writing.close = [](const TF_WritableFile* file, TF_Status* status) {
         original.writing.close(file, status);
         if (is_of(file, "full-at-close")) TF_SetStatus(status, TF_OK, "");
       };
     }},
    {"FS-188", [](Tables& tables) {  // that there is no room is an internal error
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         original.writing.append(file, buffer, n, status);
         call_no_room_internal(file, status);
       });
       tables.writing.flush = [](const TF_WritableFile* file, TF_Status* status) {
         original.writing.flush(file, status);
         call_no_room_internal(file, status);
       };
       tables.writing.close = [](const TF_WritableFile* file, TF_Status* status) {
         original.writing.close(file, status);
         call_no_room_internal(file, status);
       };
     }},
    {"FS-189", [](Tables& tables) { mislay<kGuarded>(tables); }},
    {"FS-190", [](Tables& tables) {  // the second of two files is the first
       tables.filesystem.new_writable_file = [](const TF_Filesystem* filesystem, const char* path,
                                                TF_WritableFile* file, TF_Status* status) {
         const bool is_second = ends_in(path, "thread-1");
         std::string opened = path;
         if (is_second) opened.back() = '0';
         const auto open = is_second ? original.filesystem.new_appendable_file
                                     : original.filesystem.new_writable_file;
         open(filesystem, opened.c_str(), file, status);
       };
     }},
    // Small pieces are held back, and large ones written at once: past what came before them.
    {"large-pieces-come-first", [](Tables& tables) {
       append_by(tables, [](const TF_WritableFile* file, const char* buffer, size_t n,
                            TF_Status* status) {
         constexpr size_t kLarge = 1 << 20;
         if (!is_of(file, "mixed") || n >= kLarge) {
           return original.writing.append(file, buffer, n, status);
         }
         held.append(buffer, n);
         TF_SetStatus(status, TF_OK, "");
       });
       tables.writing.close = close_with_what_was_held<kMixed>;
     }},
    // A store that has nothing where nobody has named a place in it, with directories and without.
    {"no-place", [](Tables& tables) {
       tables.filesystem.create_dir = find_no_place;
       tables.filesystem.recursively_create_dir = find_no_place;
     }},
    {"no-place-for-files", [](Tables& tables) {
       tables.filesystem.create_dir = nullptr;
       tables.filesystem.recursively_create_dir = nullptr;
       tables.filesystem.new_writable_file = [](const TF_Filesystem*, const char* path,
                                                TF_WritableFile*, TF_Status* status) {
         find_no_place(nullptr, path, status);
       };
     }},
    // Which many checks find, where they would prepare a file.
    {"files-are-refused", [](Tables& tables) {
       tables.filesystem.new_writable_file = [](const TF_Filesystem*, const char*,
                                                TF_WritableFile*, TF_Status* status) {
         TF_SetStatus(status, TF_INTERNAL, "no file");
       };
     }},
};
