#include "packing.h"

/* Bits on their way from one layout to the other, the next one lowest. */
typedef struct {
  unsigned bits;
  int count;
} Bits;

static unsigned mask_of(int width) { return (1U << width) - 1; }

/* A lane is whole bytes and, in its last byte, the bits that are left. */
static int bytes_of_lane(DLDataType dtype) { return (dtype.bits + 7) / 8; }

static int width_of_byte(DLDataType dtype, int byte) {
  return byte < dtype.bits / 8 ? 8 : dtype.bits % 8;
}

bool mtf_has_two_layouts(DLDataType dtype) { return dtype.bits % 8 != 0; }

static const uint8_t* read_bits(Bits* bits, int width, const uint8_t* packed) {
  if (bits->count >= width) return packed;
  bits->bits |= (unsigned)*packed << bits->count;
  bits->count += 8;
  return packed + 1;
}

static void drop_bits(Bits* bits, int width) {
  bits->bits >>= width;
  bits->count -= width;
}

void mtf_unpack(DLDataType dtype, int64_t size, const uint8_t* packed, uint8_t* to) {
  Bits bits = {0, 0};
  for (int64_t lane = 0; lane < size * dtype.lanes; ++lane) {
    for (int byte = 0; byte < bytes_of_lane(dtype); ++byte) {
      const int width = width_of_byte(dtype, byte);
      packed = read_bits(&bits, width, packed);
      *to++ = (uint8_t)(bits.bits & mask_of(width));
      drop_bits(&bits, width);
    }
  }
}

void mtf_pack(DLDataType dtype, int64_t size, const uint8_t* padded, uint8_t* to) {
  Bits bits = {0, 0};
  for (int64_t lane = 0; lane < size * dtype.lanes; ++lane) {
    for (int byte = 0; byte < bytes_of_lane(dtype); ++byte) {
      const int width = width_of_byte(dtype, byte);
      bits.bits |= (*padded++ & mask_of(width)) << bits.count;
      bits.count += width;
      if (bits.count >= 8) {
        *to++ = (uint8_t)bits.bits;
        drop_bits(&bits, 8);
      }
    }
  }
  if (bits.count > 0) *to = (uint8_t)bits.bits;
}
