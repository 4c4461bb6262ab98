// libhdfs over a local folder: the eighteen functions that the HDFS filesystem of tensorflow-io
// looks up, with the types and return conventions of Hadoop's hdfs.h.
//
// FOLDER_HDFS_ROOT names the folder; a path is appended to it. FOLDER_HDFS_DEFAULT is the URL of
// the default filesystem, which a machine's Hadoop configuration would name.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))

struct file_info {  // hdfsFileInfo
  int kind;         // 'F' or 'D'
  char* name;
  int64_t last_modified;  // seconds
  int64_t size;
  short replication;
  int64_t block_size;
  char* owner;
  char* group;
  short permissions;
  int64_t last_access;
};

struct file {
  int descriptor;
};

static void local_path(char* out, size_t size, const char* path) {
  const char* root = getenv("FOLDER_HDFS_ROOT");
  snprintf(out, size, "%s/%s", root == NULL ? "/nonexistent" : root, path);
}

#define LOCAL(name, path) \
  char name[4096];        \
  local_path(name, sizeof name, path)

EXPORT void* hdfsNewBuilder(void) { return calloc(1, 1); }
EXPORT void hdfsBuilderSetNameNode(void* builder, const char* name) {
  (void)builder;
  (void)name;
}
EXPORT void* hdfsBuilderConnect(void* builder) { return builder; }
EXPORT int hdfsConfGetStr(const char* key, char** value) {
  (void)key;  // only "fs.defaultFS" is asked for
  const char* configured = getenv("FOLDER_HDFS_DEFAULT");
  *value = configured == NULL ? NULL : strdup(configured);
  return 0;
}

EXPORT struct file* hdfsOpenFile(void* fs, const char* path, int flags, int buffer, short copies,
                                 int32_t block) {
  (void)fs, (void)buffer, (void)copies, (void)block;
  LOCAL(local, path);
  // A write that does not append empties the file, as in HDFS.
  const int creating = (flags & O_WRONLY) != 0 ? O_CREAT : 0;
  const int emptying = creating != 0 && (flags & O_APPEND) == 0 ? O_TRUNC : 0;
  const int descriptor = open(local, flags | creating | emptying | O_CLOEXEC, 0644);
  if (descriptor < 0) return NULL;
  struct file* opened = malloc(sizeof *opened);
  opened->descriptor = descriptor;
  if ((flags & O_APPEND) != 0) lseek(descriptor, 0, SEEK_END);
  return opened;
}

EXPORT int hdfsCloseFile(void* fs, struct file* file) {
  (void)fs;
  if (file == NULL) {  // the plugin's cleanup closes again, with what its close left: NULL
    errno = EBADF;
    return -1;
  }
  const int result = close(file->descriptor);
  free(file);
  return result;
}

EXPORT int32_t hdfsPread(void* fs, struct file* file, int64_t at, void* buffer, int32_t size) {
  (void)fs;
  return (int32_t)pread(file->descriptor, buffer, (size_t)size, at);
}
EXPORT int32_t hdfsWrite(void* fs, struct file* file, const void* buffer, int32_t size) {
  (void)fs;
  return (int32_t)write(file->descriptor, buffer, (size_t)size);
}
EXPORT int hdfsHFlush(void* fs, struct file* file) {
  (void)fs, (void)file;
  return 0;
}
EXPORT int hdfsHSync(void* fs, struct file* file) {
  (void)fs;
  return fsync(file->descriptor);
}
EXPORT int64_t hdfsTell(void* fs, struct file* file) {
  (void)fs;
  return lseek(file->descriptor, 0, SEEK_CUR);
}

EXPORT int hdfsExists(void* fs, const char* path) {
  (void)fs;
  LOCAL(local, path);
  return access(local, F_OK);
}

static int describe(const char* local, const char* name, struct file_info* info) {
  struct stat found;
  if (stat(local, &found) != 0) return -1;
  *info = (struct file_info){.kind = S_ISDIR(found.st_mode) ? 'D' : 'F',
                             .name = strdup(name),
                             .last_modified = found.st_mtime,
                             .size = S_ISDIR(found.st_mode) ? 0 : found.st_size};
  return 0;
}

EXPORT struct file_info* hdfsGetPathInfo(void* fs, const char* path) {
  (void)fs;
  LOCAL(local, path);
  struct file_info* info = calloc(1, sizeof *info);
  if (describe(local, path, info) == 0) return info;
  free(info);
  return NULL;
}

EXPORT struct file_info* hdfsListDirectory(void* fs, const char* path, int* count) {
  (void)fs;
  LOCAL(local, path);
  *count = 0;
  DIR* directory = opendir(local);
  if (directory == NULL) return NULL;
  struct file_info* infos = NULL;
  for (struct dirent* entry; (entry = readdir(directory)) != NULL;) {
    if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
    char child[4500];
    snprintf(child, sizeof child, "%s/%s", local, entry->d_name);
    char name[4500];
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    infos = realloc(infos, sizeof *infos * (size_t)(*count + 1));
    if (describe(child, name, &infos[*count]) == 0) ++*count;
  }
  closedir(directory);
  errno = 0;  // an empty directory is NULL without an error
  return infos;
}

EXPORT void hdfsFreeFileInfo(struct file_info* infos, int count) {
  for (int i = 0; i < count; ++i) free(infos[i].name);
  free(infos);
}

EXPORT int hdfsDelete(void* fs, const char* path, int recursive) {
  (void)fs, (void)recursive;
  LOCAL(local, path);
  return remove(local);
}
EXPORT int hdfsCreateDirectory(void* fs, const char* path) {
  (void)fs;
  LOCAL(local, path);
  for (char* slash = local + 1; (slash = strchr(slash, '/')) != NULL; ++slash) {
    *slash = '\0';  // parents come along, as in HDFS
    mkdir(local, 0755);
    *slash = '/';
  }
  return mkdir(local, 0755) == 0 || errno == EEXIST ? 0 : -1;
}
EXPORT int hdfsRename(void* fs, const char* from, const char* to) {
  (void)fs;
  LOCAL(local_from, from);
  LOCAL(local_to, to);
  return rename(local_from, local_to);
}
