/* Elements of less than a byte: packed, as DLPack has them, and padded to whole bytes. No Python. */
#pragma once

#include <stdbool.h>

#include "modular_tf/dlpack.h"

/* Whether padding changes how elements lie. */
bool mtf_has_two_layouts(DLDataType dtype);

/* Copies `size` elements from packed to padded, or back. Packed, the first lane of the first element
 * is in the lowest bits of the first byte; padded, each lane starts at a byte, and the bits above it
 * are written as 0 and read as nothing. Neither has gaps, and `to` has room for all. */
void mtf_unpack(DLDataType dtype, int64_t size, const uint8_t* packed, uint8_t* to);
void mtf_pack(DLDataType dtype, int64_t size, const uint8_t* padded, uint8_t* to);
