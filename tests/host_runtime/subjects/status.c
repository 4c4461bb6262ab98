/* status.h, driven from C. */
#include "modular_tf/status.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#include "cases.h"

static TF_Status* status; /* a new one in each case */

__attribute__((constructor)) static void make_status(void) { status = TF_NewStatus(); }

CASE(a_new_status_is_ok) {
  CHECK_CODE(TF_OK, status);
  CHECK_TEXT("", TF_Message(status));
}

CASE(a_status_keeps_a_copy_of_its_message) {
  char message[] = "no such bucket";
  TF_SetStatus(status, TF_NOT_FOUND, message);
  message[0] = 'X';
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK_TEXT("no such bucket", TF_Message(status));
}

CASE(ok_keeps_no_message) {
  TF_SetStatus(status, TF_INTERNAL, "old");
  TF_SetStatus(status, TF_OK, "new");
  CHECK_CODE(TF_OK, status);
  CHECK_TEXT("", TF_Message(status));
}

CASE(a_null_message_is_empty) {
  TF_SetStatus(status, TF_INTERNAL, NULL);
  CHECK_CODE(TF_INTERNAL, status);
  CHECK_TEXT("", TF_Message(status));
}

CASE(the_message_may_be_the_old_one) {
  TF_SetStatus(status, TF_INTERNAL, "context: a message long enough for a heap block of its own");
  TF_SetStatus(status, TF_ABORTED, TF_Message(status));
  CHECK_TEXT("context: a message long enough for a heap block of its own", TF_Message(status));
  TF_SetStatus(status, TF_ABORTED, TF_Message(status) + strlen("context: "));
  CHECK_TEXT("a message long enough for a heap block of its own", TF_Message(status));
  TF_SetStatusFromIOError(status, ENOENT, TF_Message(status));
  CHECK_TEXT("a message long enough for a heap block of its own; No such file or directory",
             TF_Message(status));
}

CASE(every_code_of_the_list_is_kept) {
  for (int code = TF_OK; code <= TF_UNAUTHENTICATED; ++code) {
    TF_SetStatus(status, (TF_Code)code, "");
    CHECK_CODE(code, status);
  }
}

CASE(a_code_outside_the_list_is_unknown) {
  TF_SetStatus(status, (TF_Code)17, "odd");
  CHECK_CODE(TF_UNKNOWN, status);
  CHECK_TEXT("odd", TF_Message(status));
  TF_SetStatus(status, (TF_Code)-1, "odd");
  CHECK_CODE(TF_UNKNOWN, status);
}

CASE(deleting_no_status_is_allowed) { TF_DeleteStatus(NULL); }

static void unseen(const char* key, const char* value, void* capture) {
  (void)key, (void)value, (void)capture;
  exit(1);
}

/* What TF_NewStatus gives then, at which plugins do not look. */
CASE(a_status_that_there_was_no_memory_for) {
  TF_SetStatus(NULL, TF_OK, "");
  TF_SetPayload(NULL, "a", "1");
  TF_SetStatusFromIOError(NULL, ENOENT, "/a");
  TF_ForEachPayload(NULL, unseen, NULL);
  CHECK_CODE(TF_RESOURCE_EXHAUSTED, NULL);
  CHECK_TEXT("out of memory", TF_Message(NULL));
}

struct seen {
  int count;
  char keys[64];
  char values[64];
};

static void see(const char* key, const char* value, void* capture) {
  struct seen* seen = capture;
  ++seen->count;
  strcat(seen->keys, key);
  strcat(seen->values, value);
}

CASE(payloads_are_kept_by_key) {
  TF_SetStatus(status, TF_INTERNAL, "");
  char value[] = "1";
  TF_SetPayload(status, "a", value);
  value[0] = 'X';
  TF_SetPayload(status, "a", "2");
  TF_SetPayload(status, "b", "3");
  struct seen seen = {0, "", ""};
  TF_ForEachPayload(status, see, &seen);
  CHECK(seen.count == 2);
  CHECK(strcmp(seen.keys, "ab") == 0 || strcmp(seen.keys, "ba") == 0);
  CHECK(strcmp(seen.values, "23") == 0 || strcmp(seen.values, "32") == 0);
}

CASE(a_new_code_drops_the_payloads) {
  TF_SetStatus(status, TF_INTERNAL, "");
  TF_SetPayload(status, "a", "1");
  TF_SetStatus(status, TF_ABORTED, "");
  struct seen seen = {0, "", ""};
  TF_ForEachPayload(status, see, &seen);
  CHECK(seen.count == 0);
}

CASE(an_ok_status_takes_no_payload) {
  TF_SetPayload(status, "a", "1");
  struct seen seen = {0, "", ""};
  TF_ForEachPayload(status, see, &seen);
  CHECK(seen.count == 0);
}

CASE(an_io_error_names_its_context) {
  TF_SetStatusFromIOError(status, ENOENT, "/a/b");
  CHECK_CODE(TF_NOT_FOUND, status);
  CHECK_TEXT("/a/b; No such file or directory", TF_Message(status));
  TF_SetStatusFromIOError(status, EACCES, NULL);
  CHECK_CODE(TF_PERMISSION_DENIED, status);
  CHECK_TEXT("; Permission denied", TF_Message(status));
  TF_SetStatusFromIOError(status, 0, "/a/b");
  CHECK_CODE(TF_OK, status);
  CHECK_TEXT("", TF_Message(status));
}

/* Prints "errno code" lines; Python compares them with the sheet. */
CASE(print_codes_of_errors) {
  for (int error = -1; error < 200; ++error) {
    TF_SetStatusFromIOError(status, error, "");
    printf("%d %d\n", error, (int)TF_GetCode(status));
  }
}

/* The second names, as tsl_status.h of TensorFlow 2.12 and later declares them. */
TF_Status* TSL_NewStatus(void);
void TSL_DeleteStatus(TF_Status*);
void TSL_SetStatus(TF_Status*, TF_Code, const char*);
void TSL_SetPayload(TF_Status*, const char*, const char*);
void TSL_ForEachPayload(const TF_Status*, TF_PayloadVisitor, void*);
void TSL_SetStatusFromIOError(TF_Status*, int, const char*);
TF_Code TSL_GetCode(const TF_Status*);
const char* TSL_Message(const TF_Status*);

CASE(tsl_names_work_on_the_same_objects) {
  TF_Status* status = TSL_NewStatus();
  struct seen seen = {0, "", ""};
  TSL_SetStatus(status, TF_INTERNAL, "m");
  TSL_SetPayload(status, "k", "v");
  TSL_ForEachPayload(status, see, &seen);
  CHECK(seen.count == 1);
  CHECK_CODE(TF_INTERNAL, status);
  TSL_SetStatusFromIOError(status, EEXIST, "c");
  CHECK(TSL_GetCode(status) == TF_ALREADY_EXISTS);
  CHECK_TEXT("c; File exists", TSL_Message(status));
  TSL_DeleteStatus(status);
}
