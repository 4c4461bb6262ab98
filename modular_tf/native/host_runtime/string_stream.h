/* How a TF_StringStream is filled; env.h says how it is read. */
#pragma once

#include "modular_tf/env.h"

/* An empty stream, owned by the caller until TF_StringStreamDone. NULL when memory is out. */
TF_StringStream* mtf_string_stream_new(void);

/* Adds `text`, which the stream frees. False, and `text` freed, when memory is out or `text` is
 * NULL. */
bool mtf_string_stream_add(TF_StringStream* list, char* text);
