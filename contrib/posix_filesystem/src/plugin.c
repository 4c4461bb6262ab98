/* The operations of the plugin but copies, renames and globs; which schemes there are, and the tables of each.
 *
 * What an operation must do is said in modular_tf/filesystem_ops.h and modular_tf/file_ops.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "operations.h"
#include "tree_removal.h"

void posix_succeed(TF_Status* status) { TF_SetStatus(status, TF_OK, ""); }

void posix_fail(TF_Status* status, int error, const char* path) {
  TF_SetStatusFromIOError(status, error, path);
}

void posix_fail_both(TF_Status* status, int error, const char* source, const char* target) {
  char paths[2 * PATH_MAX + sizeof(" -> ")];
  snprintf(paths, sizeof(paths), "%s -> %s", source, target);
  posix_fail(status, error, paths);
}

void posix_refuse(TF_Status* status, TF_Code code, const char* path, const char* reason) {
  const size_t room = strlen(path) + strlen(reason) + sizeof("; ");
  char* message = malloc(room);
  if (message == NULL) {
    TF_SetStatus(status, code, reason);
    return;
  }
  snprintf(message, room, "%s; %s", path, reason);
  TF_SetStatus(status, code, message);
  free(message);
}

/* -- reading: at any offset, one pread per call, no buffer and no shared position between threads -- */

typedef struct Reader {
  int descriptor;
  char path[]; /* for the messages of failing reads */
} Reader;

/* open(2) opens directories for reading too; their first read would fail, which is too late. */
static int open_for_reading(const char* path) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return -1;
  struct stat facts;
  const int error = fstat(descriptor, &facts) != 0 ? errno : S_ISDIR(facts.st_mode) ? EISDIR : 0;
  if (error == 0) return descriptor;
  close(descriptor);
  errno = error;
  return -1;
}

static void posix_new_random_access_file(const TF_Filesystem* filesystem, const char* path,
                                         TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem;
  const size_t path_bytes = strlen(path) + 1;
  Reader* reader = malloc(sizeof(Reader) + path_bytes);
  if (reader == NULL) return posix_fail(status, ENOMEM, path);
  reader->descriptor = open_for_reading(path);
  if (reader->descriptor < 0) {
    posix_fail(status, errno, path);
    free(reader);
    return;
  }
  memcpy(reader->path, path, path_bytes);
  file->plugin_file = reader;
  posix_succeed(status);
}

static void posix_random_access_cleanup(TF_RandomAccessFile* file) {
  Reader* reader = file->plugin_file;
  if (reader == NULL) return;
  close(reader->descriptor);
  free(reader);
  file->plugin_file = NULL;
}

/* How many of `n` bytes a file can have from `offset` on: none is longer than INT64_MAX, and the
 * kernel takes what would end behind that for a mistake. */
static size_t possible_bytes(uint64_t offset, size_t n) {
  const uint64_t left = offset < INT64_MAX ? INT64_MAX - offset : 0;
  return n < left ? n : (size_t)left;
}

/* The kernel may give fewer bytes than asked (2 GiB is its limit per call): only 0 is the end.
 * Returns the bytes read, or -1 with errno. */
static ssize_t read_fully(int descriptor, uint64_t offset, size_t n, char* buffer) {
  size_t done = 0;
  while (done < n) {
    const ssize_t got = pread(descriptor, buffer + done, n - done, (off_t)(offset + done));
    if (got == 0) break;
    if (got > 0) {
      done += (size_t)got;
    } else if (errno != EINTR) {
      return -1;
    }
  }
  return (ssize_t)done;
}

static int64_t posix_random_access_read(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                        char* buffer, TF_Status* status) {
  const Reader* reader = file->plugin_file;
  const size_t possible = possible_bytes(offset, n);
  const ssize_t done = read_fully(reader->descriptor, offset, possible, buffer);
  if (done < 0) {
    posix_fail(status, errno, reader->path);
  } else if ((size_t)done < n) {
    TF_SetStatus(status, TF_OUT_OF_RANGE, "end of file");
  } else {
    posix_succeed(status);
  }
  return done;
}

/* -- a file as memory: the kernel's page cache itself, mapped; nothing is copied.
 *
 * The mapping survives the deletion of the file. Whoever shortens the file in place takes pages
 * away from under it, and touching those raises SIGBUS: replace files by rename instead -- */

typedef struct Region {
  void* data;
  size_t length;
} Region;

/* 0 when the file can be mapped, else the errno that says why not. */
static int mappable(int descriptor, struct stat* facts) {
  if (fstat(descriptor, facts) != 0) return errno;
  if (S_ISDIR(facts->st_mode)) return EISDIR;
  return facts->st_size == 0 ? EINVAL : 0; /* no memory is 0 bytes long */
}

/* 0 and a mapped region, or an errno. The mapping outlives the descriptor. */
static int map_file(const char* path, Region* region) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  struct stat facts;
  int error = mappable(descriptor, &facts);
  if (error == 0) {
    region->length = (size_t)facts.st_size;
    region->data = mmap(NULL, region->length, PROT_READ, MAP_SHARED, descriptor, 0);
    error = region->data == MAP_FAILED ? errno : 0;
    if (error == ENODEV) error = ENOTSUP; /* it is there, and cannot be mapped, as files of /sys */
  }
  close(descriptor);
  return error;
}

static void posix_new_region(const TF_Filesystem* filesystem, const char* path,
                             TF_ReadOnlyMemoryRegion* region, TF_Status* status) {
  (void)filesystem;
  Region* mapped = malloc(sizeof(Region));
  const int error = mapped == NULL ? ENOMEM : map_file(path, mapped);
  if (error != 0) {
    posix_fail(status, error, path);
    free(mapped);
    return;
  }
  region->plugin_memory_region = mapped;
  posix_succeed(status);
}

static void posix_region_cleanup(TF_ReadOnlyMemoryRegion* region) {
  Region* mapped = region->plugin_memory_region;
  if (mapped == NULL) return;
  munmap(mapped->data, mapped->length);
  free(mapped);
  region->plugin_memory_region = NULL;
}

static const void* posix_region_data(const TF_ReadOnlyMemoryRegion* region) {
  return ((const Region*)region->plugin_memory_region)->data;
}

static uint64_t posix_region_length(const TF_ReadOnlyMemoryRegion* region) {
  return ((const Region*)region->plugin_memory_region)->length;
}

/* -- writing at the end of a file, through a buffer of our own that gathers small appends.
 *
 * A failed write stays: every later operation, close included, reports it again, so that a file
 * with a hole never looks complete -- */

/* Measured: appends of 100 bytes gain nothing beyond it, and bigger ones bypass it. */
enum { kBufferBytes = 64 * 1024 };

typedef struct Writer {
  int descriptor;  /* -1 once closed */
  int error;       /* errno of the first failed write; 0 while all is well */
  size_t buffered; /* bytes waiting in `buffer` */
  char* buffer;    /* made by the first append that is small enough for it */
  char path[];
} Writer;

static void open_writer(const char* path, int flags, TF_WritableFile* file, TF_Status* status) {
  const size_t path_bytes = strlen(path) + 1;
  Writer* writer = calloc(1, sizeof(Writer) + path_bytes);
  if (writer == NULL) return posix_fail(status, ENOMEM, path);
  writer->descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
  if (writer->descriptor < 0) {
    posix_fail(status, errno, path);
    free(writer);
    return;
  }
  memcpy(writer->path, path, path_bytes);
  file->plugin_file = writer;
  posix_succeed(status);
}

static void posix_new_writable_file(const TF_Filesystem* filesystem, const char* path,
                                    TF_WritableFile* file, TF_Status* status) {
  (void)filesystem;
  open_writer(path, O_TRUNC, file, status);
}

static void posix_new_appendable_file(const TF_Filesystem* filesystem, const char* path,
                                      TF_WritableFile* file, TF_Status* status) {
  (void)filesystem;
  open_writer(path, O_APPEND, file, status);
  /* The kernel moves to the end at the first write; tell must say where that will be before it. */
  if (TF_GetCode(status) == TF_OK) {
    lseek(((Writer*)file->plugin_file)->descriptor, 0, SEEK_END);
  }
}

/* Drops `done` bytes from the front of two pieces. */
static void advance(struct iovec pieces[2], size_t done) {
  for (int i = 0; i < 2; ++i) {
    const size_t step = done < pieces[i].iov_len ? done : pieces[i].iov_len;
    pieces[i].iov_base = (char*)pieces[i].iov_base + step;
    pieces[i].iov_len -= step;
    done -= step;
  }
}

/* Hands the buffered bytes and then `n` more to the kernel, in one call where it takes them. */
static void write_through(Writer* writer, const char* bytes, size_t n) {
  struct iovec pieces[2] = {{writer->buffer, writer->buffered}, {(char*)bytes, n}};
  while (writer->error == 0 && pieces[0].iov_len + pieces[1].iov_len > 0) {
    const ssize_t done = writev(writer->descriptor, pieces, 2);
    if (done > 0) {
      advance(pieces, (size_t)done);
    } else if (done == 0) {
      writer->error = EIO; /* it would take nothing for ever */
    } else if (errno != EINTR) {
      writer->error = errno;
    }
  }
  writer->buffered = 0;
}

/* Only the memory for it is allocated here: without it appends go straight to the kernel. */
static bool fits_in_buffer(Writer* writer, size_t n) {
  if (n > kBufferBytes - writer->buffered) return false;
  if (writer->buffer == NULL) writer->buffer = malloc(kBufferBytes);
  return writer->buffer != NULL;
}

static void add(Writer* writer, const char* bytes, size_t n) {
  if (!fits_in_buffer(writer, n)) return write_through(writer, bytes, n);
  memcpy(writer->buffer + writer->buffered, bytes, n);
  writer->buffered += n;
}

/* True when the file is open and no write has failed; else `status` says which it is. */
static bool usable(const Writer* writer, TF_Status* status) {
  if (writer->descriptor < 0) {
    posix_refuse(status, TF_FAILED_PRECONDITION, writer->path, "the file is closed");
  } else if (writer->error != 0) {
    posix_fail(status, writer->error, writer->path);
  } else {
    posix_succeed(status);
    return true;
  }
  return false;
}

static void posix_writable_append(const TF_WritableFile* file, const char* buffer, size_t n,
                                  TF_Status* status) {
  Writer* writer = file->plugin_file;
  if (!usable(writer, status) || n == 0) return; /* with n == 0 `buffer` may be anything */
  add(writer, buffer, n);
  usable(writer, status);
}

/* Asked from the kernel, since another appender may have moved the end. */
static int64_t posix_writable_tell(const TF_WritableFile* file, TF_Status* status) {
  const Writer* writer = file->plugin_file;
  if (!usable(writer, status)) return -1;
  const off_t position = lseek(writer->descriptor, 0, SEEK_CUR);
  if (position >= 0) return position + (int64_t)writer->buffered;
  posix_fail(status, errno, writer->path);
  return -1;
}

static void posix_writable_flush(const TF_WritableFile* file, TF_Status* status) {
  Writer* writer = file->plugin_file;
  if (!usable(writer, status)) return;
  write_through(writer, NULL, 0);
  usable(writer, status);
}

/* Pipes and most devices have nothing to sync and answer EINVAL. */
static void posix_writable_sync(const TF_WritableFile* file, TF_Status* status) {
  Writer* writer = file->plugin_file;
  posix_writable_flush(file, status);
  if (TF_GetCode(status) != TF_OK) return;
  int done;
  do {
    done = fsync(writer->descriptor);
  } while (done != 0 && errno == EINTR);
  if (done != 0 && errno != EINVAL) writer->error = errno;
  usable(writer, status);
}

/* The descriptor is gone after this, whatever came out. Returns the first errno of the writer. */
static int finish(Writer* writer) {
  write_through(writer, NULL, 0);
  if (close(writer->descriptor) != 0 && writer->error == 0 && errno != EINTR) {
    writer->error = errno; /* network filesystems report lost writes only here */
  }
  writer->descriptor = -1;
  return writer->error;
}

static void posix_writable_close(const TF_WritableFile* file, TF_Status* status) {
  Writer* writer = file->plugin_file;
  if (writer->descriptor < 0) {
    usable(writer, status);
    return;
  }
  const int error = finish(writer);
  if (error != 0) return posix_fail(status, error, writer->path);
  posix_succeed(status);
}

/* An abandoned file keeps what was appended to it. */
static void posix_writable_cleanup(TF_WritableFile* file) {
  Writer* writer = file->plugin_file;
  if (writer == NULL) return;
  if (writer->descriptor >= 0) finish(writer);
  free(writer->buffer);
  free(writer);
  file->plugin_file = NULL;
}

/* -- names: files, directories and whole trees of them -- */

/* Of the entry itself: a link to a directory is not a directory here. */
static bool is_real_directory(const char* path) {
  struct stat facts;
  return lstat(path, &facts) == 0 && S_ISDIR(facts.st_mode);
}

static void posix_delete_file(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (unlink(path) == 0) return posix_succeed(status);
  const int error = errno;
  /* POSIX lets unlink answer EPERM for a directory; the contract wants FAILED_PRECONDITION. */
  posix_fail(status, error == EPERM && is_real_directory(path) ? EISDIR : error, path);
}

static void posix_path_exists(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (access(path, F_OK) != 0) return posix_fail(status, errno, path);
  posix_succeed(status);
}

/* The nearest number that 64 bits hold, for the years before 1677 and after 2262. */
static int64_t nanoseconds(struct timespec time) {
  int64_t found = 0;
  if (!__builtin_mul_overflow((int64_t)time.tv_sec, 1000000000, &found) &&
      !__builtin_add_overflow(found, time.tv_nsec, &found)) {
    return found;
  }
  return time.tv_sec < 0 ? INT64_MIN : INT64_MAX;
}

static void posix_stat(const TF_Filesystem* filesystem, const char* path,
                       TF_FileStatistics* statistics, TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  if (stat(path, &facts) != 0) return posix_fail(status, errno, path);
  statistics->length = facts.st_size;
  statistics->mtime_nsec = nanoseconds(facts.st_mtim);
  statistics->is_directory = S_ISDIR(facts.st_mode);
  posix_succeed(status);
}

/* For a file the header would take OK and false, but TensorFlow reads only the status. */
static bool posix_is_directory(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  if (stat(path, &facts) != 0) {
    posix_fail(status, errno, path);
    return false;
  }
  if (!S_ISDIR(facts.st_mode)) {
    posix_fail(status, ENOTDIR, path);
    return false;
  }
  posix_succeed(status);
  return true;
}

static int64_t posix_get_file_size(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  int error = stat(path, &facts) == 0 ? 0 : errno;
  if (error == 0 && S_ISDIR(facts.st_mode)) error = EISDIR;
  if (error != 0) {
    posix_fail(status, error, path);
    return -1;
  }
  posix_succeed(status);
  return facts.st_size;
}

enum { kAllPermissions = 0777 }; /* the user's umask takes away from these */

static void posix_create_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (mkdir(path, kAllPermissions) != 0) return posix_fail(status, errno, path);
  posix_succeed(status);
}

/* Cuts the last component off `path`. False when nothing would be left to make. */
static bool cut_last_component(char* path) {
  size_t end = strlen(path);
  while (end > 0 && path[end - 1] == '/') --end;
  while (end > 0 && path[end - 1] != '/') --end;
  while (end > 0 && path[end - 1] == '/') --end;
  path[end] = '\0';
  return end > 0;
}

/* mkdir that is content with a directory that is there. Returns 0 or an errno. */
static int ensure_directory(const char* path) {
  struct stat facts;
  if (mkdir(path, kAllPermissions) == 0) return 0;
  const int error = errno;
  if (error != EEXIST) return error;
  return stat(path, &facts) == 0 && S_ISDIR(facts.st_mode) ? 0 : ENOTDIR;
}

/* Tries the whole path first, so that the common cases cost one call, and goes up only as far as
 * parents are missing. `path` is scratch of `length` bytes; it comes back whole.
 *
 * Safe against others who make the same tree: a directory that appears meanwhile is fine. */
static int ensure_tree(char* path, size_t length) {
  int error = ensure_directory(path);
  while (error == ENOENT && cut_last_component(path)) error = ensure_directory(path);
  while (error == 0 && strlen(path) < length) {
    path[strlen(path)] = '/'; /* put back the slash that the cut replaced: one component more */
    error = ensure_directory(path);
  }
  return error;
}

/* The cut leaves NUL bytes where slashes were; runs of slashes would confuse the way back. */
static void squeeze_slashes(char* path) {
  char* to = path;
  for (const char* from = path; *from != '\0'; ++from) {
    if (*from == '/' && (from[1] == '/' || (from[1] == '\0' && to != path))) continue;
    *to++ = *from;
  }
  *to = '\0';
}

static void posix_recursively_create_dir(const TF_Filesystem* filesystem, const char* path,
                                         TF_Status* status) {
  (void)filesystem;
  if (*path == '\0') return posix_succeed(status); /* the current directory is there */
  char* scratch = strdup(path);
  if (scratch == NULL) return posix_fail(status, ENOMEM, path);
  squeeze_slashes(scratch);
  const int error = ensure_tree(scratch, strlen(scratch));
  if (error == 0) {
    posix_succeed(status);
  } else {
    posix_fail(status, error, scratch); /* names the component that stood in the way */
  }
  free(scratch);
}

static void posix_delete_dir(const TF_Filesystem* filesystem, const char* path, TF_Status* status) {
  (void)filesystem;
  if (rmdir(path) == 0) return posix_succeed(status);
  /* POSIX lets rmdir say EEXIST for a directory with entries. */
  posix_fail(status, errno == EEXIST ? ENOTEMPTY : errno, path);
}

static int list(const char* path, Names* names) {
  DIR* directory = opendir(path);
  if (directory == NULL) return errno;
  const int error = posix_read_names(directory, names);
  closedir(directory);
  return error;
}

static int posix_get_children(const TF_Filesystem* filesystem, const char* path, char*** entries,
                              TF_Status* status) {
  (void)filesystem;
  Names names = {NULL, 0, 0};
  const int error = list(path, &names);
  if (error != 0) {
    posix_drop_names(&names);
    posix_fail(status, error, path);
    return -1;
  }
  *entries = names.items; /* the host's from here on: it frees name by name */
  posix_succeed(status);
  return names.count;
}

static void report(const TreeRemoval* removal, const char* path, TF_Status* status) {
  if (removal->error == 0) return posix_succeed(status);
  char context[PATH_MAX + sizeof(": cannot delete ") + sizeof(removal->where)];
  snprintf(context, sizeof(context), "%s: cannot delete %s", path, removal->where);
  posix_fail(status, removal->error, context);
}

static void posix_delete_recursively(const TF_Filesystem* filesystem, const char* path,
                                     uint64_t* undeleted_files, uint64_t* undeleted_dirs,
                                     TF_Status* status) {
  (void)filesystem;
  const TreeRemoval removal = posix_remove_tree(path);
  *undeleted_files = removal.undeleted_files;
  *undeleted_dirs = removal.undeleted_dirs;
  report(&removal, path, status);
}

/* -- the entry point -- */

/* Memory that goes over to the host comes from malloc throughout the plugin. */
static void* plugin_allocate(size_t size) { return malloc(size); }
static void plugin_free(void* memory) { free(memory); }

/* The disk has no state of ours: `plugin_filesystem` stays NULL. */
static void init(TF_Filesystem* filesystem, TF_Status* status) {
  filesystem->plugin_filesystem = NULL;
  posix_succeed(status);
}

static void cleanup(TF_Filesystem* filesystem) { (void)filesystem; }

static const TF_RandomAccessFileOps kRandomAccessFileOps = {
    .cleanup = posix_random_access_cleanup,
    .read = posix_random_access_read,
};

static const TF_WritableFileOps kWritableFileOps = {
    .cleanup = posix_writable_cleanup,
    .append = posix_writable_append,
    .tell = posix_writable_tell,
    .flush = posix_writable_flush,
    .sync = posix_writable_sync,
    .close = posix_writable_close,
};

static const TF_ReadOnlyMemoryRegionOps kRegionOps = {
    .cleanup = posix_region_cleanup,
    .data = posix_region_data,
    .length = posix_region_length,
};

/* Slots left NULL on purpose, where the host's own answer is the right one:
 * - translate_name: "file:///a/../b" and "/a/../b" become "/b", which is what the kernel wants;
 * - paths_exist: asks path_exists for each, and so would we;
 * - flush_caches, transactions, configuration: there is nothing of the kind. */
static const TF_FilesystemOps kFilesystemOps = {
    .init = init,
    .cleanup = cleanup,
    .new_random_access_file = posix_new_random_access_file,
    .new_writable_file = posix_new_writable_file,
    .new_appendable_file = posix_new_appendable_file,
    .new_read_only_memory_region_from_file = posix_new_region,
    .create_dir = posix_create_dir,
    .recursively_create_dir = posix_recursively_create_dir,
    .delete_file = posix_delete_file,
    .delete_dir = posix_delete_dir,
    .delete_recursively = posix_delete_recursively,
    .rename_file = posix_rename_file,
    .copy_file = posix_copy_file,
    .path_exists = posix_path_exists,
    .stat = posix_stat,
    .is_directory = posix_is_directory,
    .get_file_size = posix_get_file_size,
    .get_children = posix_get_children,
    .get_matching_paths = posix_get_matching_paths,
};

/* The host frees each table by itself, so each scheme gets its own copies. NULL when out of
 * memory, which the host refuses with a message of its own. */
static void* copy_of(const void* table, size_t size) {
  void* copy = plugin_allocate(size);
  if (copy != NULL) memcpy(copy, table, size);
  return copy;
}

static void fill(TF_FilesystemPluginOps* ops, const char* scheme, size_t length) {
  TF_SetFilesystemVersionMetadata(ops);
  ops->scheme = strndup(scheme, length);
  ops->filesystem_ops = copy_of(&kFilesystemOps, sizeof(kFilesystemOps));
  ops->random_access_file_ops = copy_of(&kRandomAccessFileOps, sizeof(kRandomAccessFileOps));
  ops->writable_file_ops = copy_of(&kWritableFileOps, sizeof(kWritableFileOps));
  ops->read_only_memory_region_ops = copy_of(&kRegionOps, sizeof(kRegionOps));
}

static size_t count_items(const char* list) {
  size_t items = 1;
  for (; *list != '\0'; ++list) items += *list == ',';
  return items;
}

TF_CAPI_EXPORT void TF_InitPlugin(TF_FilesystemPluginInfo* info) {
  info->plugin_memory_allocate = plugin_allocate;
  info->plugin_memory_free = plugin_free;
  const char* rest = MTF_POSIX_SCHEMES;
  const size_t count = count_items(rest);
  info->ops = calloc(count, sizeof(TF_FilesystemPluginOps));
  info->num_schemes = info->ops == NULL ? 0 : count;
  for (size_t i = 0; i < info->num_schemes; ++i) {
    const size_t length = strcspn(rest, ",");
    fill(&info->ops[i], rest, length);
    rest += length + 1;
  }
}
