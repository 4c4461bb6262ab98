#include "input_watch.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "failure.h"

namespace mtf::kernels {
namespace {

constexpr size_t kBlock = 4096;
constexpr size_t kBlocks = 64;  // at most, of one input

uint64_t mixed(uint64_t sum, const char* data, size_t size) {
  for (size_t at = 0; at < size; at += sizeof sum) {
    uint64_t word = 0;
    std::memcpy(&word, data + at, std::min(size - at, sizeof word));
    sum = (sum ^ word) * 0x9E3779B97F4A7C15u;
    sum ^= sum >> 32;
  }
  return sum;
}

uint64_t checksum(const char* data, size_t size) {
  if (size <= kBlock * kBlocks) return mixed(size, data, size);
  const size_t step = (size - kBlock) / (kBlocks - 1);
  uint64_t sum = mixed(size, data + size - kBlock, kBlock);
  for (size_t block = 0; block < kBlocks - 1; ++block) sum = mixed(sum, data + block * step, kBlock);
  return sum;
}

bool overlap(const CallInput& one, const CallInput& other) {
  const auto* first = static_cast<const char*>(one.tensor.data());
  const auto* second = static_cast<const char*>(other.tensor.data());
  return first < second + other.tensor.size() && second < first + one.tensor.size();
}

bool is_watched(const mtf_kernel_call* call, const CallInput& input) {
  if (!input.tensor.buffer || !(input.is_on_host || call->place->is_host)) return false;
  return std::none_of(call->inputs.begin(), call->inputs.end(), [&](const CallInput& other) {
    return other.is_donated && other.tensor.buffer && overlap(input, other);
  });
}

uint64_t checksum_of(const mtf_kernel_call* call, const CallInput& input) {
  if (!is_watched(call, input)) return 0;
  return checksum(static_cast<const char*>(input.tensor.data()), input.tensor.size());
}

const char* name_of(const mtf_kernel_node* node, size_t index) {
  for (const Argument& argument : node->input_arguments) {
    if (static_cast<int>(index) < argument.stop) return argument.name.c_str();
  }
  return "";
}

}  // namespace

std::vector<uint64_t> checksums_of_inputs(const mtf_kernel_call* call) {
  std::vector<uint64_t> sums;
  sums.reserve(call->inputs.size());
  for (const CallInput& input : call->inputs) sums.push_back(checksum_of(call, input));
  return sums;
}

void check_inputs(mtf_kernel_call* call, const std::vector<uint64_t>& before) {
  for (size_t index = 0; index < before.size(); ++index) {
    if (checksum_of(call, call->inputs[index]) == before[index]) continue;
    char text[480];
    std::snprintf(text, sizeof text,
                  "the kernel wrote to input %zu ('%s'), which was only lent to it: the array that was"
                  " given may hold other values now. Do not use that array any more, and disable the"
                  " plugin or report this to its authors; an input that is donated may be written to",
                  index, name_of(call->node, index));
    return set_failure(&call->failure, TF_INTERNAL, kRuleInputsUnchanged, text);
  }
}

}  // namespace mtf::kernels
