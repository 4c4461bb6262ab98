// Defects of readers.
#include <atomic>
#include <cstring>

#include "defects.h"
#include "leaking.h"
#include "misjudging.h"
#include "open_paths.h"

namespace {

using Read = decltype(TF_RandomAccessFileOps::read);

// Follows readers, and replaces `read`.
void read_by(defective::Tables& tables, Read read) {
  defective::follow_readers(tables);
  tables.reading.read = read;
}

int64_t failed(TF_Status* status, TF_Code code, int64_t returned) {
  TF_SetStatus(status, code, "the read failed");
  return returned;
}

constexpr size_t kLate = size_t{32} << 10;

std::atomic<int> shared_handles{0};
std::atomic<bool> vanished{false};

}  // namespace

DEFECTS(reading) = {
    {"FS-150", [](Tables& tables) {  // what is there is not found
       misjudge<&TF_FilesystemOps::new_random_access_file>(tables, "opened", TF_NOT_FOUND);
     }},
    {"FS-151", [](Tables& tables) {  // another code for what is missing
       misjudge<&TF_FilesystemOps::new_random_access_file>(tables, "X", TF_INTERNAL);
     }},
    {"FS-152", [](Tables& tables) {  // a missing parent is a failed precondition
       misjudge<&TF_FilesystemOps::new_random_access_file>(tables, "X/y", TF_FAILED_PRECONDITION);
     }},
    {"FS-153", [](Tables& tables) {  // a directory is not found
       misjudge<&TF_FilesystemOps::new_random_access_file>(tables, "D", TF_NOT_FOUND);
     }},
    {"FS-154", [](Tables& tables) {  // a name below a file is a missing one
       misjudge<&TF_FilesystemOps::new_random_access_file>(tables, "F/x", TF_NOT_FOUND);
     }},
    {"FS-155", [](Tables& tables) {  // the empty path, which the reference makes "/", is no path
       tables.filesystem.new_random_access_file =
           [](const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
              TF_Status* status) {
             if (std::strcmp(path, "/") == 0) return TF_SetStatus(status, TF_INTERNAL, path);
             original.filesystem.new_random_access_file(filesystem, path, file, status);
           };
     }},
    {"FS-156", [](Tables& tables) {  // the last byte is wrong
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         const int64_t got = original.reading.read(file, offset, n, buffer, status);
         if (is_of(file, "whole")) buffer[got - 1] = 'x';
         return got;
       });
     }},
    {"FS-157", [](Tables& tables) {  // the offset is forgotten
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "middle")) offset = 0;
         return original.reading.read(file, offset, n, buffer, status);
       });
     }},
    {"FS-158", [](Tables& tables) {  // the last byte before the end is lost
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         const int64_t got = original.reading.read(file, offset, n, buffer, status);
         return is_of(file, "across") ? got - 1 : got;
       });
     }},
    {"FS-159", [](Tables& tables) {  // far behind the end is an error
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "behind") && offset == 100) return failed(status, TF_INVALID_ARGUMENT, -1);
         return original.reading.read(file, offset, n, buffer, status);
       });
     }},
    {"FS-160", [](Tables& tables) {  // nothing cannot be read
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "nothing") && n == 0) return failed(status, TF_INVALID_ARGUMENT, -1);
         return original.reading.read(file, offset, n, buffer, status);
       });
     }},
    {"FS-161", [](Tables& tables) {  // an empty file cannot be read
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "empty")) return failed(status, TF_NOT_FOUND, -1);
         return original.reading.read(file, offset, n, buffer, status);
       });
     }},
    {"FS-162", [](Tables& tables) {  // the end is not told
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         const int64_t got = original.reading.read(file, offset, n, buffer, status);
         if (is_of(file, "looped")) TF_SetStatus(status, TF_OK, "");
         return got;
       });
     }},
    {"FS-163", [](Tables& tables) {  // a NUL behind the bytes
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         const int64_t got = original.reading.read(file, offset, n, buffer, status);
         if (is_of(file, "bounded") && n == 2) buffer[n] = '\0';
         return got;
       });
     }},
    {"FS-164", [](Tables& tables) {  // a failure that returns a count
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "failing")) return failed(status, TF_INVALID_ARGUMENT, 0);
         return original.reading.read(file, offset, n, buffer, status);
       });
     }},
    {"FS-165", [](Tables& tables) {  // beyond 32 KiB the bytes are others
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         const int64_t got = original.reading.read(file, offset, n, buffer, status);
         if (is_of(file, "big") && offset > kLate) buffer[0] = static_cast<char>(~buffer[0]);
         return got;
       });
     }},
    {"FS-166", [](Tables& tables) {  // a second handle moves the first
       tables.filesystem.new_random_access_file =
           [](const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
              TF_Status* status) {
             original.filesystem.new_random_access_file(filesystem, path, file, status);
             if (TF_GetCode(status) != TF_OK) return;
             remember_path(file->plugin_file, path);
             if (ends_in(path, "shared")) ++shared_handles;
           };
       tables.reading.cleanup = [](TF_RandomAccessFile* file) {
         if (is_of(file, "shared")) --shared_handles;
         original.reading.cleanup(file);
       };
       tables.reading.read = [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "shared") && shared_handles > 1) ++offset;
         return original.reading.read(file, offset, n, buffer, status);
       };
     }},
    {"FS-167", [](Tables& tables) {  // a deleted file cannot be read
       read_by(tables, [](const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                          char* buffer, TF_Status* status) -> int64_t {
         if (is_of(file, "vanishing") && vanished) return failed(status, TF_NOT_FOUND, -1);
         return original.reading.read(file, offset, n, buffer, status);
       });
       tables.filesystem.delete_file = [](const TF_Filesystem* filesystem, const char* path,
                                          TF_Status* status) {
         if (ends_in(path, "vanishing")) vanished = true;
         original.filesystem.delete_file(filesystem, path, status);
       };
     }},
    {"FS-168", [](Tables& tables) {  // each opened file leaves a descriptor
       tables.filesystem.new_random_access_file =
           [](const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
              TF_Status* status) {
             original.filesystem.new_random_access_file(filesystem, path, file, status);
             if (ends_in(path, "often")) leak_descriptor();
           };
     }},
    {"FS-169", [](Tables& tables) {  // the message of a failed open does not name the path
       tables.filesystem.new_random_access_file =
           [](const TF_Filesystem* filesystem, const char* path, TF_RandomAccessFile* file,
              TF_Status* status) {
             original.filesystem.new_random_access_file(filesystem, path, file, status);
             const TF_Code code = TF_GetCode(status);
             if (code != TF_OK) TF_SetStatus(status, code, "no luck");
           };
     }},
};
