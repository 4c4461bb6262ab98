// Whether a kernel writes to inputs that it was only lent: what they hold is compared before and after.
#pragma once

#include <cstdint>
#include <vector>

#include "call.h"

namespace mtf::kernels {

// Checksums of the inputs of a call that the kernel must leave as they are. Inputs that are donated may
// become outputs; variables, and memory of a device that is not the host's, are not looked at. At most 256
// KiB of an input are read, in blocks from its first to its last byte.
std::vector<uint64_t> checksums_of_inputs(const mtf_kernel_call* call);

// Fails a call whose inputs have other checksums than before. Does nothing where there are none.
void check_inputs(mtf_kernel_call* call, const std::vector<uint64_t>& before);

}  // namespace mtf::kernels
