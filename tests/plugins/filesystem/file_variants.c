/* Variants whose files misbehave. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "files.h"
#include "ledger.h"
#include "plan.h"

#define READ_AS(function)                                               \
  static void plan_##function(registration_plan* plan) {                \
    plan->schemes[0].random_access_file.read = function;                \
  }

static int64_t good_read(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  return good_random_access_file_ops.read(file, offset, n, buffer, status);
}

/* ---- read ---- */

static int64_t read_half(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                         TF_Status* status) {
  int64_t count = good_read(file, offset, n > 1 ? n / 2 : n, buffer, status);
  TF_SetStatus(status, TF_OK, "");
  return count;
}
READ_AS(read_half)

/* At the end of the file: no bytes, and no OUT_OF_RANGE to say so. */
static int64_t read_without_end(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                char* buffer, TF_Status* status) {
  int64_t count = good_read(file, offset, n, buffer, status);
  if (TF_GetCode(status) == TF_OUT_OF_RANGE) TF_SetStatus(status, TF_OK, "");
  return count;
}
READ_AS(read_without_end)

static int64_t read_minus_one(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                              char* buffer, TF_Status* status) {
  (void)file, (void)offset, (void)n, (void)buffer;
  TF_SetStatus(status, TF_OK, "");
  return -1;
}
READ_AS(read_minus_one)

static int64_t read_too_many(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                             char* buffer, TF_Status* status) {
  good_read(file, offset, n, buffer, status);
  TF_SetStatus(status, TF_OK, "");
  return (int64_t)n + 16;
}
READ_AS(read_too_many)

static int64_t read_with_error(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                               char* buffer, TF_Status* status) {
  int64_t count = good_read(file, offset, n, buffer, status);
  TF_SetStatus(status, TF_DATA_LOSS, "the checksum does not match");
  return count;
}
READ_AS(read_with_error)

static int64_t read_fails(const TF_RandomAccessFile* file, uint64_t offset, size_t n, char* buffer,
                          TF_Status* status) {
  (void)file, (void)offset, (void)n, (void)buffer;
  TF_SetStatus(status, TF_UNAVAILABLE, "the store is down");
  return 0;
}
READ_AS(read_fails)

static int64_t read_fails_oddly(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                                char* buffer, TF_Status* status) {
  (void)file, (void)offset, (void)n, (void)buffer;
  TF_SetStatus(status, TF_UNAVAILABLE, "na\xc3\xafve \xe2\x82\xac \xff\xe2\x82");
  return 0;
}
READ_AS(read_fails_oddly)

/* Waits until a second read runs at the same time: only a host that lets go of its locks, Python's
 * among them, gets that far. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static int64_t reading, met;

static bool wait_for_company(void) {
  struct timespec end;
  clock_gettime(CLOCK_REALTIME, &end);
  end.tv_sec += 20;
  int waited = 0;
  while (met < 2 && waited == 0) waited = pthread_cond_timedwait(&arrived, &lock, &end);
  return met >= 2;
}

static int64_t read_in_company(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                               char* buffer, TF_Status* status) {
  pthread_mutex_lock(&lock);
  reading += 1;
  if (reading > met) met = reading;
  fixture_ledger.reads_at_once = met;
  pthread_cond_broadcast(&arrived);
  bool in_company = wait_for_company();
  pthread_mutex_unlock(&lock);
  int64_t count = good_read(file, offset, n, buffer, status);
  pthread_mutex_lock(&lock);
  reading -= 1;
  pthread_mutex_unlock(&lock);
  if (in_company) return count;
  TF_SetStatus(status, TF_DEADLINE_EXCEEDED, "no second read ran in parallel");
  return -1;
}
READ_AS(read_in_company)

static void reader_without_handle(const TF_Filesystem* filesystem, const char* path,
                                  TF_RandomAccessFile* file, TF_Status* status) {
  (void)filesystem, (void)path, (void)file;
  TF_SetStatus(status, TF_OK, "");
}

static int64_t read_nothing(const TF_RandomAccessFile* file, uint64_t offset, size_t n,
                            char* buffer, TF_Status* status) {
  (void)offset, (void)n, (void)buffer;
  bool null = file->plugin_file == NULL;
  TF_SetStatus(status, null ? TF_OUT_OF_RANGE : TF_INTERNAL, "garbage instead of NULL");
  return null ? 0 : -1;
}

static void clean_up_nothing(TF_RandomAccessFile* file) {
  (void)file;
  ledger_add(&fixture_ledger.files_cleaned_up, 1);
}

/* Legal: a reader whose plugin needs no handle. */
static void open_without_handle(registration_plan* plan) {
  plan->schemes[0].filesystem.new_random_access_file = reader_without_handle;
  plan->schemes[0].random_access_file.read = read_nothing;
  plan->schemes[0].random_access_file.cleanup = clean_up_nothing;
}

/* ---- Writers ---- */

static void append_half(const TF_WritableFile* file, const char* buffer, size_t n,
                        TF_Status* status) {
  good_writable_file_ops.append(file, buffer, n / 2, status);
}

static void append_fails(const TF_WritableFile* file, const char* buffer, size_t n,
                         TF_Status* status) {
  (void)file, (void)buffer, (void)n;
  TF_SetStatus(status, TF_RESOURCE_EXHAUSTED, "the disk is full");
}

static void close_fails(const TF_WritableFile* file, TF_Status* status) {
  good_writable_file_ops.close(file, status);
  TF_SetStatus(status, TF_DATA_LOSS, "the upload was refused");
}

static int64_t tell_minus_one(const TF_WritableFile* file, TF_Status* status) {
  (void)file;
  TF_SetStatus(status, TF_OK, "");
  return -1;
}

#define CHANGE(function, statement) \
  static void function(registration_plan* plan) { plan->schemes[0].writable_file.statement; }
CHANGE(plan_append_half, append = append_half)
CHANGE(plan_append_fails, append = append_fails)
CHANGE(plan_close_fails, close = close_fails)
CHANGE(plan_tell_minus_one, tell = tell_minus_one)

const variant file_variants[] = {
    {"read-short", plan_read_half},
    {"read-end-unsaid", plan_read_without_end},
    {"read-minus-one", plan_read_minus_one},
    {"read-too-many", plan_read_too_many},
    {"read-error-with-data", plan_read_with_error},
    {"read-fails", plan_read_fails},
    {"read-fails-oddly", plan_read_fails_oddly},
    {"read-in-company", plan_read_in_company},
    {"open-without-handle", open_without_handle},
    {"append-short", plan_append_half},
    {"append-fails", plan_append_fails},
    {"close-fails", plan_close_fails},
    {"tell-minus-one", plan_tell_minus_one},
    {NULL, NULL},
};
