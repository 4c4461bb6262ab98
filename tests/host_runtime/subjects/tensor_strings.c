/* TF_TString of tensor.h, driven from C. */
#include "modular_tf/tensor.h"

#include "cases.h"

static const char long_text[] = "a text of more than twenty-two bytes";

static void check_string(const TF_TString* string, TF_TString_Type type, const char* text,
                         size_t size) {
  CHECK(TF_StringGetType(string) == type);
  CHECK(TF_StringGetSize(string) == size);
  CHECK(memcmp(TF_StringGetDataPointer(string), text, size) == 0);
}

CASE(a_new_string_is_empty) {
  TF_TString string;
  memset(&string, 0xFF, sizeof(string));
  TF_StringInit(&string);
  check_string(&string, TF_TSTR_SMALL, "", 0);
  CHECK(TF_StringGetCapacity(&string) == 22);
}

CASE(twenty_two_bytes_are_in_place_and_one_more_in_memory) {
  TF_TString string;
  TF_StringInit(&string);
  TF_StringCopy(&string, long_text, 22);
  check_string(&string, TF_TSTR_SMALL, long_text, 22);
  CHECK(*(unsigned char*)&string == 22 << 2);
  CHECK(memcmp((char*)&string + 1, long_text, 22) == 0);
  TF_StringCopy(&string, long_text, 23);
  check_string(&string, TF_TSTR_LARGE, long_text, 23);
  CHECK(TF_StringGetCapacity(&string) == 31);
  CHECK(string.u.large.size == (23 << 2 | 1));
  CHECK(string.u.large.ptr[23] == '\0');
  TF_StringDealloc(&string);
  check_string(&string, TF_TSTR_SMALL, "", 0);
}

CASE(every_length_is_kept) {
  char text[100];
  TF_TString string;
  memset(text, 'x', sizeof(text));
  TF_StringInit(&string);
  for (size_t size = 0; size <= sizeof(text); ++size) {
    TF_StringCopy(&string, text, size);
    check_string(&string, size > 22 ? TF_TSTR_LARGE : TF_TSTR_SMALL, text, size);
    CHECK(TF_StringGetCapacity(&string) >= size);
  }
  TF_StringDealloc(&string);
}

CASE(a_string_is_replaced_by_a_part_of_itself) {
  TF_TString string;
  TF_StringInit(&string);
  TF_StringCopy(&string, long_text, sizeof(long_text));
  TF_StringCopy(&string, TF_StringGetDataPointer(&string) + 2, 30);
  check_string(&string, TF_TSTR_LARGE, long_text + 2, 30);
  TF_StringCopy(&string, TF_StringGetDataPointer(&string) + 5, 4);
  check_string(&string, TF_TSTR_SMALL, "of m", 4);
  TF_StringCopy(&string, TF_StringGetDataPointer(&string) + 3, 1);
  check_string(&string, TF_TSTR_SMALL, "m", 1);
}

CASE(a_view_shares_its_bytes) {
  TF_TString string;
  TF_StringInit(&string);
  TF_StringCopy(&string, long_text, 30);
  TF_StringAssignView(&string, long_text, 10);
  check_string(&string, TF_TSTR_VIEW, long_text, 10);
  CHECK(TF_StringGetDataPointer(&string) == long_text);
  CHECK(TF_StringGetCapacity(&string) == 0);
  TF_StringDealloc(&string);
  check_string(&string, TF_TSTR_SMALL, "", 0);
}

CASE(an_offset_leads_behind_the_string) {
  struct {
    TF_TString string;
    char text[8];
  } place = {.text = "behind"};
  place.string.u.offset = (TF_TString_Offset){6 << 2 | TF_TSTR_OFFSET, sizeof(TF_TString), 1};
  check_string(&place.string, TF_TSTR_OFFSET, "behind", 6);
  CHECK(TF_StringGetCapacity(&place.string) == 0);
  TF_StringDealloc(&place.string);
  check_string(&place.string, TF_TSTR_SMALL, "", 0);
}

CASE(a_text_for_which_there_is_no_memory_is_empty) {
  TF_TString string;
  TF_StringInit(&string);
  TF_StringCopy(&string, long_text, SIZE_MAX / 2);
  check_string(&string, TF_TSTR_SMALL, "", 0);
  TF_StringCopy(&string, long_text, SIZE_MAX);
  check_string(&string, TF_TSTR_SMALL, "", 0);
}

CASE(null_is_an_empty_string) {
  TF_TString string;
  TF_StringInit(NULL);
  TF_StringCopy(NULL, "a", 1);
  TF_StringAssignView(NULL, "a", 1);
  TF_StringDealloc(NULL);
  check_string(NULL, TF_TSTR_SMALL, "", 0);
  CHECK(TF_StringGetCapacity(NULL) == 22);
  TF_StringInit(&string);
  TF_StringCopy(&string, NULL, 5);
  check_string(&string, TF_TSTR_SMALL, "", 0);
  TF_StringAssignView(&string, NULL, 5);
  CHECK(TF_StringGetSize(&string) == 0);
}
