/* All of the plugin API: include this, or the part that you need. device_rfc.h stands alone: it is
 * an older form of device.h. */
#ifndef MODULAR_TF_MODULAR_TF_H_
#define MODULAR_TF_MODULAR_TF_H_

#include "modular_tf/device.h"
#include "modular_tf/env.h"
#include "modular_tf/export.h"
#include "modular_tf/file_ops.h"
#include "modular_tf/file_statistics.h"
#include "modular_tf/filesystem.h"
#include "modular_tf/filesystem_ops.h"
#include "modular_tf/kernels.h"
#include "modular_tf/kernels_experimental.h"
#include "modular_tf/logging.h"
#include "modular_tf/ops.h"
#include "modular_tf/status.h"
#include "modular_tf/tensor.h"

#endif
