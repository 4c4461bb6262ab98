/* Copying and renaming files: all or nothing.
 *
 * The bytes go to a new file, which then takes the target's name: a failing copy leaves
 * the target as it was, and nobody sees half of it. A new file gets the mode of its source, less
 * the umask; a replaced one keeps what it had, since its rights do not belong to its bytes. Where
 * the folder takes no new file, or the target is a device, the bytes go into the target itself. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "operations.h"

/* -- names that nobody uses, for files on their way to a name of their own -- */

enum {
  kSpareNameBytes = 24,
  kSpareNameTries = 16 /* 64 random bits meet a name that is taken only if somebody makes them */
};

/* Where the kernel has no random numbers yet: different for each call and process. */
static uint64_t bits_of_the_clock(void) {
  struct timespec now = {0, 0};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)getpid() << 40 ^ (uint64_t)now.tv_sec << 30 ^ (uint64_t)now.tv_nsec;
}

/* Fills in a random name that is short enough for every directory. Whoever uses it must refuse a
 * file that has it already, and may then try another, kSpareNameTries times. */
static void make_spare_name(char name[kSpareNameBytes]) {
  uint64_t bits;
  if (getrandom(&bits, sizeof(bits), GRND_NONBLOCK) != sizeof(bits)) bits = bits_of_the_clock();
  snprintf(name, kSpareNameBytes, ".copy-%016llx", (unsigned long long)bits);
}

/* -- a name in an open directory: all steps of an operation then mean one and the same directory,
 * whatever others rename meanwhile, and no path of theirs is too long -- */

/* Starts as {-1, ""}. Ends with leave_place, also after an error. */
typedef struct Place {
  int folder; /* opened with O_PATH; -1 for none */
  char name[NAME_MAX + 1];
} Place;

static void leave_place(Place* place) {
  if (place->folder >= 0) close(place->folder);
  place->folder = -1;
}

enum { kMostLinks = 40 }; /* as in the kernel */

/* Cuts the last component off `path` and returns the directory that it is in. */
static const char* split(char* path, const char** name) {
  char* slash = strrchr(path, '/');
  *name = slash == NULL ? path : slash + 1;
  if (slash == NULL) return ".";
  if (slash == path) return "/";
  *slash = '\0';
  return path;
}

static bool can_be_a_file(const char* name) {
  return *name != '\0' && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* Goes to what `path`, which is changed, names from the directory where `place` is. */
static int go(char* path, Place* place) {
  if (*path == '\0') return ENOENT;
  const char* name;
  const char* folder = split(path, &name);
  if (!can_be_a_file(name)) return EISDIR;
  if (strlen(name) > NAME_MAX) return ENAMETOOLONG;
  const int from = place->folder < 0 ? AT_FDCWD : place->folder;
  const int entered = openat(from, folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (entered < 0) return errno;
  leave_place(place);
  place->folder = entered;
  strcpy(place->name, name);
  return 0;
}

static int copy_path(const char* path, char scratch[PATH_MAX]) {
  const size_t bytes = strlen(path) + 1;
  if (bytes > PATH_MAX) return ENAMETOOLONG;
  memcpy(scratch, path, bytes);
  return 0;
}

/* The entry that `path` names, be it a link. Returns 0 or an errno; EISDIR for a path that can only
 * be a directory's. */
static int find_entry(const char* path, Place* place) {
  char scratch[PATH_MAX];
  const int error = copy_path(path, scratch);
  return error != 0 ? error : go(scratch, place);
}

/* Where open(path, O_CREAT) finds or makes a file: behind the links that `path` may be, also behind
 * a link to nothing. Returns like find_entry. */
static int find_file(const char* path, Place* place) {
  char scratch[PATH_MAX];
  int error = copy_path(path, scratch);
  for (int links = 0; error == 0 && links <= kMostLinks; ++links) {
    error = go(scratch, place);
    if (error != 0) return error;
    const ssize_t size = readlinkat(place->folder, place->name, scratch, sizeof(scratch));
    if (size < 0) return errno == EINVAL || errno == ENOENT ? 0 : errno; /* EINVAL: it is no link */
    if ((size_t)size == sizeof(scratch)) return ENAMETOOLONG;
    scratch[size] = '\0';
  }
  return error != 0 ? error : ELOOP;
}

/* -- a file that is written beside its place and takes its name when it is whole. Where the disk can do
 * that it has no name until then: nobody sees it, and it is gone when the process is killed. Elsewhere it
 * has a spare name -- */

/* Ends with drop_draft. */
typedef struct Draft {
  int descriptor;             /* open for writing */
  char name[kSpareNameBytes]; /* empty while it has none */
} Draft;

enum { kProcPathBytes = 32 };

/* The path by which the kernel links a file that has no name yet. */
static void path_of_descriptor(int descriptor, char path[kProcPathBytes]) {
  snprintf(path, kProcPathBytes, "/proc/self/fd/%d", descriptor);
}

static bool can_be_linked(int descriptor) {
  char path[kProcPathBytes];
  path_of_descriptor(descriptor, path);
  return faccessat(AT_FDCWD, path, F_OK, 0) == 0; /* false where /proc is not mounted */
}

static int link_as(const Place* place, const Draft* draft, const char* name) {
  char path[kProcPathBytes];
  path_of_descriptor(draft->descriptor, path);
  const bool done = linkat(AT_FDCWD, path, place->folder, name, AT_SYMLINK_FOLLOW) == 0;
  return done ? 0 : errno;
}

static int make_unnamed(const Place* place, mode_t mode, Draft* draft) {
  draft->name[0] = '\0';
  draft->descriptor = openat(place->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  if (draft->descriptor < 0) return errno;
  if (can_be_linked(draft->descriptor)) return 0;
  close(draft->descriptor);
  return ENOTSUP;
}

static int make_named(const Place* place, mode_t mode, Draft* draft) {
  int error = EEXIST;
  for (int tries = 0; error == EEXIST && tries < kSpareNameTries; ++tries) {
    make_spare_name(draft->name);
    draft->descriptor =
        openat(place->folder, draft->name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    error = draft->descriptor < 0 ? errno : 0;
  }
  return error;
}

/* Makes an empty file in the directory of `place`, with `mode` as the umask lets it be. Returns 0 or
 * an errno. */
static int make_draft(const Place* place, mode_t mode, Draft* draft) {
  return make_unnamed(place, mode, draft) == 0 ? 0 : make_named(place, mode, draft);
}

/* Gives the draft its spare name, if it has none. Returns 0 or an errno. */
static int name_draft(const Place* place, Draft* draft) {
  if (draft->name[0] != '\0') return 0;
  char name[kSpareNameBytes];
  int error = EEXIST;
  for (int tries = 0; error == EEXIST && tries < kSpareNameTries; ++tries) {
    make_spare_name(name);
    error = link_as(place, draft, name);
  }
  if (error == 0) snprintf(draft->name, sizeof(draft->name), "%s", name);
  return error;
}

/* Renames the draft, which has a name, to its place; what was there is replaced. By a rename also
 * where nothing was there: that is how whoever watches the directory hears of a file that is whole.
 * Returns 0 or an errno. */
static int put_draft(const Place* place, Draft* draft) {
  if (renameat(place->folder, draft->name, place->folder, place->name) != 0) return errno;
  draft->name[0] = '\0';
  return 0;
}

/* Closes it; removes it where it was not put in its place. */
static void drop_draft(const Place* place, Draft* draft) {
  if (draft->name[0] != '\0') unlinkat(place->folder, draft->name, 0);
  close(draft->descriptor);
}

/* -- moving bytes from one descriptor to another without taking them through user space -- */

enum { kStepBytes = 1 << 30, kBufferBytes = 256 * 1024, kBlockBytes = 512 };

/* One copy under way. Both descriptors stand where the last step left them, so that one way of
 * moving bytes goes on where another gave up. */
typedef struct Move {
  int source;
  int target;
  bool ended; /* a read found the end of the source */
} Move;

/* Lets the kernel move up to `limit` bytes: returns how many it moved, 0 at the end, -1 with errno. */
typedef ssize_t Step(int source, int target, size_t limit);

static ssize_t step_by_copy_file_range(int source, int target, size_t limit) {
  return copy_file_range(source, NULL, target, NULL, limit, 0);
}

static ssize_t step_by_sendfile(int source, int target, size_t limit) {
  return sendfile(target, source, NULL, limit);
}

static size_t at_most(int64_t left, size_t limit) {
  return left < (int64_t)limit ? (size_t)left : limit;
}

/* Repeats a step until `*left` bytes are moved or it finds the end. Returns 0 or an errno. */
static int repeat(Step* step, const Move* move, int64_t* left) {
  while (*left > 0) {
    const ssize_t moved = step(move->source, move->target, at_most(*left, kStepBytes));
    if (moved == 0) return 0;
    if (moved > 0) *left -= moved;
    if (moved < 0 && errno != EINTR) return errno;
  }
  return 0;
}

/* The answers of a kernel or filesystem that does not know a call, or not for these two files. */
static bool not_offered(int error) {
  return error == ENOSYS || error == EINVAL || error == EXDEV || error == EOPNOTSUPP ||
         error == EPERM || error == EBADF || error == ETXTBSY;
}

/* Returns 0 or an errno. */
static int write_fully(int target, const char* bytes, size_t n) {
  while (n > 0) {
    const ssize_t done = write(target, bytes, n);
    if (done == 0) return EIO; /* it would for ever */
    if (done < 0 && errno != EINTR) return errno;
    if (done > 0) {
      bytes += done;
      n -= (size_t)done;
    }
  }
  return 0;
}

/* Moves bytes through `buffer`. Only here an end is believed: the kernel's own ways go by the size
 * that it has noted, which is wrong for its own files. */
static int read_and_write(Move* move, char* buffer, int64_t left) {
  while (left > 0) {
    const ssize_t got = read(move->source, buffer, at_most(left, kBufferBytes));
    if (got == 0) break;
    if (got < 0 && errno != EINTR) return errno;
    const int error = got > 0 ? write_fully(move->target, buffer, (size_t)got) : 0;
    if (error != 0) return error;
    if (got > 0) left -= got;
  }
  move->ended = left > 0;
  return 0;
}

static int move_by_reading(Move* move, int64_t left) {
  char* buffer = malloc(kBufferBytes);
  if (buffer == NULL) return ENOMEM;
  const int error = read_and_write(move, buffer, left);
  free(buffer);
  return error;
}

/* Moves `left` bytes, or fewer when the source ends before. */
static int move_bytes(Move* move, int64_t left) {
  int error = repeat(step_by_copy_file_range, move, &left);
  if (not_offered(error)) error = repeat(step_by_sendfile, move, &left);
  if (error != 0 && !not_offered(error)) return error;
  return left > 0 ? move_by_reading(move, left) : 0;
}

static int go_to(const Move* move, off_t offset) {
  const bool done = lseek(move->source, offset, SEEK_SET) >= 0 &&
                    lseek(move->target, offset, SEEK_SET) >= 0;
  return done ? 0 : errno;
}

static int move_rest(Move* move, off_t offset) {
  const int error = go_to(move, offset);
  return error != 0 ? error : move_bytes(move, INT64_MAX);
}

static bool has_byte_at(int source, off_t offset) {
  char byte;
  return offset >= 0 && pread(source, &byte, 1, offset) == 1;
}

/* No data follows `offset` in a file of `size` bytes, it is said. */
static int make_last_hole(Move* move, off_t offset, off_t size) {
  if (size <= offset || !has_byte_at(move->source, size - 1)) return move_rest(move, offset);
  return ftruncate(move->target, size) == 0 ? 0 : errno;
}

/* Where the data that begins at `start` ends; far away where nobody knows. */
static off_t end_of_data(int source, off_t start) {
  const off_t end = lseek(source, start, SEEK_HOLE);
  return end < 0 ? INT64_MAX : end;
}

/* Only what lies between the holes. The size is asked for first: what is appended after that is
 * data, and no part of a hole. */
static int move_data(Move* move) {
  struct stat now;
  off_t end = 0;
  while (!move->ended) {
    if (fstat(move->source, &now) != 0) return errno;
    const off_t start = lseek(move->source, end, SEEK_DATA);
    if (start < 0 && errno == ENXIO) return make_last_hole(move, end, now.st_size);
    if (start < 0) return move_rest(move, end);
    end = end_of_data(move->source, start);
    int error = go_to(move, start);
    if (error == 0) error = move_bytes(move, end - start);
    if (error != 0) return error;
  }
  return 0;
}

static bool has_holes(const struct stat* facts) {
  return S_ISREG(facts->st_mode) && facts->st_blocks < facts->st_size / kBlockBytes;
}

static bool can_have_holes(int target) {
  struct stat facts;
  return fstat(target, &facts) == 0 && S_ISREG(facts.st_mode);
}

/* Copies from the start of `source` to where a read finds its end, to the start of the empty
 * `target`. `facts` is what fstat said of the source; its size is a hint, since files of the kernel
 * tell a wrong one and others may change meanwhile. Holes stay holes. Returns 0 or an errno. */
static int copy_bytes(int source, int target, const struct stat* facts) {
  Move move = {source, target, false};
  if (facts->st_size == 0) return move_by_reading(&move, INT64_MAX); /* as files of /proc say */
  if (has_holes(facts) && can_have_holes(target)) return move_data(&move);
  return move_bytes(&move, INT64_MAX);
}

/* -- what belongs to a file that is replaced, not to its bytes -- */

static const char kAccessList[] = "system.posix_acl_access";
enum { kAccessListBytes = 4096 };

/* Not being allowed to give a file away is no reason to fail: cp does not either. Returns whether
 * it has the group that it should have. */
static bool give_away(const struct stat* facts, int descriptor) {
  struct stat now;
  if (fchown(descriptor, facts->st_uid, facts->st_gid) == 0) return true;
  if (fchown(descriptor, (uid_t)-1, facts->st_gid) == 0) return true;
  return fstat(descriptor, &now) == 0 && now.st_gid == facts->st_gid;
}

/* Returns whether the new file has the list of the one at `path`, be it none. */
static bool keep_access_list(const char* path, int descriptor) {
  char list[kAccessListBytes];
  const ssize_t size = getxattr(path, kAccessList, list, sizeof(list));
  if (size < 0) return errno == ENODATA || errno == ENOTSUP;
  return fsetxattr(descriptor, kAccessList, list, (size_t)size, 0) == 0;
}

/* Members of a group that was lost count as others from now on, and others as members of the new
 * one: they all get what both had. */
static mode_t without_group(mode_t mode) {
  const mode_t both = mode >> 3 & mode & 07;
  return (mode & 0700) | both << 3 | both;
}

/* Gives the file at `descriptor` the owner, mode and access list of the one at `path`, of which
 * `facts` is what stat said. What cannot be given away makes it narrower: nobody may do more with
 * the new file than with the old one. */
static void keep_rights(const char* path, const struct stat* facts, int descriptor) {
  fremovexattr(descriptor, kAccessList); /* what it has from the default list of its directory */
  const bool kept = give_away(facts, descriptor) && keep_access_list(path, descriptor);
  const mode_t mode = facts->st_mode & 0777;
  if (fchmod(descriptor, kept ? mode : without_group(mode)) != 0) errno = 0; /* it stays narrow */
}

/* -- copy_file -- */

typedef struct Copy {
  int source;
  struct stat source_facts;
  const char* target;
  bool target_exists;
  struct stat target_facts; /* of what the links lead to */
  Place place;              /* of the same */
} Copy;

/* 0 or an errno. */
static int open_source(const char* path, Copy* copy) {
  copy->source = open(path, O_RDONLY | O_CLOEXEC);
  if (copy->source < 0) return errno;
  if (fstat(copy->source, &copy->source_facts) != 0) return errno;
  return S_ISDIR(copy->source_facts.st_mode) ? EISDIR : 0;
}

static bool same_file(const struct stat* one, const struct stat* other) {
  return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

/* Copies into the empty file at `descriptor`. 0 or an errno. */
static int fill(const Copy* copy, int descriptor) {
  return copy_bytes(copy->source, descriptor, &copy->source_facts);
}

/* Network filesystems tell lost writes when a descriptor is closed, which is asked for here while
 * the file is not in its place. */
static int flush(int descriptor) {
  const int second = dup(descriptor);
  if (second < 0) return errno;
  return close(second) == 0 || errno == EINTR ? 0 : errno;
}

/* Empties what is open for writing and fills it, unless it has become the source meanwhile. */
static int overwrite(const Copy* copy, int descriptor) {
  struct stat facts;
  if (fstat(descriptor, &facts) != 0) return errno;
  if (same_file(&facts, &copy->source_facts)) return 0;
  if (S_ISREG(facts.st_mode) && ftruncate(descriptor, 0) != 0) return errno;
  return fill(copy, descriptor);
}

static int copy_in_place(const Copy* copy) {
  const int descriptor = open(copy->target, O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) return errno;
  int error = overwrite(copy, descriptor);
  if (close(descriptor) != 0 && error == 0 && errno != EINTR) error = errno;
  return error;
}

/* While it is filled, what replaces a file is for its owner alone. */
static mode_t mode_of_draft(const Copy* copy) {
  return copy->source_facts.st_mode & (copy->target_exists ? 0600 : 0777);
}

/* The draft is named before it gets its rights: with them it may belong to somebody else. */
static int complete(const Copy* copy, Draft* draft) {
  int error = fill(copy, draft->descriptor);
  if (error == 0) error = flush(draft->descriptor);
  if (error == 0) error = name_draft(&copy->place, draft);
  if (error != 0) return error;
  if (copy->target_exists) {
    keep_rights(copy->target, &copy->target_facts, draft->descriptor);
  }
  return put_draft(&copy->place, draft);
}

/* The answers of a folder that takes no new file; /proc says ENOENT. */
static bool is_closed_folder(int error) {
  return error == EACCES || error == EPERM || error == ENOENT;
}

static int copy_beside(const Copy* copy) {
  Draft draft;
  int error = make_draft(&copy->place, mode_of_draft(copy), &draft);
  if (copy->target_exists && is_closed_folder(error)) return copy_in_place(copy);
  if (error != 0) return error;
  error = complete(copy, &draft);
  drop_draft(&copy->place, &draft);
  return error;
}

/* True for the links of /proc/self/fd too, which lead to files that have no such name. */
static bool has_no_place(const Copy* copy) {
  struct stat facts;
  if (!copy->target_exists) return false;
  return fstatat(copy->place.folder, copy->place.name, &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
         !same_file(&facts, &copy->target_facts);
}

/* A file that may not be written may not be replaced either, though its folder would allow it. */
static bool is_protected(const Copy* copy) {
  return copy->target_exists && faccessat(AT_FDCWD, copy->target, W_OK, AT_EACCESS) != 0 &&
         errno == EACCES;
}

static int copy_to_target(Copy* copy) {
  if (copy->target_exists && !S_ISREG(copy->target_facts.st_mode)) return copy_in_place(copy);
  if (is_protected(copy)) return EACCES;
  const int error = find_file(copy->target, &copy->place);
  if (error != 0) return error;
  return has_no_place(copy) ? copy_in_place(copy) : copy_beside(copy);
}

/* Looks at the target; a copy of a file onto itself is done at once. */
static int copy_opened(Copy* copy) {
  copy->target_exists = stat(copy->target, &copy->target_facts) == 0;
  if (!copy->target_exists && errno != ENOENT) return errno;
  if (copy->target_exists && S_ISDIR(copy->target_facts.st_mode)) return EISDIR;
  if (copy->target_exists && same_file(&copy->source_facts, &copy->target_facts)) return 0;
  return copy_to_target(copy);
}

static int copy_file(const char* source, const char* target) {
  Copy copy = {.source = -1, .target = target, .place = {-1, ""}};
  int error = open_source(source, &copy);
  if (error == 0) error = copy_opened(&copy);
  leave_place(&copy.place);
  if (copy.source >= 0) close(copy.source);
  return error;
}

void posix_copy_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                     TF_Status* status) {
  (void)filesystem;
  const int error = copy_file(source, target);
  if (error != 0) return posix_fail_both(status, error, source, target);
  posix_succeed(status);
}

/* -- rename_file. Atomic: whoever looks at the target sees the old file or the new one. Never leaves the
 * device: EXDEV is passed on as UNIMPLEMENTED, since a copy could not be atomic -- */

/* rename(2) does nothing where both names are links of one file. */
static bool is_left(const char* source, const char* target, const struct stat* before) {
  struct stat now;
  return before->st_nlink > 1 && strcmp(source, target) != 0 && lstat(source, &now) == 0 &&
         now.st_dev == before->st_dev && now.st_ino == before->st_ino;
}

/* Puts what has the spare name back, if nobody made another file there meanwhile. */
static void put_back(const Place* place, const char* spare) {
  if (linkat(place->folder, spare, place->folder, place->name, 0) != 0) return;
  unlinkat(place->folder, spare, 0);
}

/* Moves the link at `place` aside first. If it is another file by now, the second rename moves that
 * one, as it should; if not, it does nothing again, and the link can go: its name is ours alone. */
static int move_link(const Place* place, const char* target) {
  char spare[kSpareNameBytes];
  make_spare_name(spare);
  if (renameat(place->folder, place->name, place->folder, spare) != 0) {
    return errno == ENOENT ? 0 : errno; /* somebody else was faster */
  }
  if (renameat(place->folder, spare, AT_FDCWD, target) != 0) {
    const int error = errno;
    put_back(place, spare);
    return error;
  }
  unlinkat(place->folder, spare, 0);
  return 0;
}

static int remove_link(const char* source, const char* target) {
  Place place = {-1, ""};
  int error = find_entry(source, &place);
  if (error == 0) error = move_link(&place, target);
  leave_place(&place);
  return error;
}

/* A host that answers UNIMPLEMENTED by a copy and a deletion would delete what the link leads to. */
static bool leads_to(const char* target, const char* source) {
  struct stat one, other;
  return stat(source, &one) == 0 && stat(target, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

static void fail(TF_Status* status, int error, const char* source, const char* target) {
  if (error == EXDEV && leads_to(target, source)) {
    posix_refuse(status, TF_FAILED_PRECONDITION, target, "a link to it from another device");
  } else {
    posix_fail_both(status, error, source, target);
  }
}

void posix_rename_file(const TF_Filesystem* filesystem, const char* source, const char* target,
                       TF_Status* status) {
  (void)filesystem;
  struct stat facts;
  if (lstat(source, &facts) != 0) return posix_fail(status, errno, source);
  if (S_ISDIR(facts.st_mode)) return posix_fail(status, EISDIR, source);
  int error = rename(source, target) == 0 ? 0 : errno;
  if (error == 0 && is_left(source, target, &facts)) error = remove_link(source, target);
  if (error != 0) return fail(status, error, source, target);
  posix_succeed(status);
}
