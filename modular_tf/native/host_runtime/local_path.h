/* The path on the local disk that a caller of env.h means. */
#pragma once

#include "modular_tf/status.h"

/* Sets the status to OK and returns the path inside `uri`: the whole of it when it is a plain path,
 * what follows the host when it is a file:// URI. NULL and UNIMPLEMENTED for any other scheme. */
const char* mtf_local_path(const char* uri, TF_Status* status);
