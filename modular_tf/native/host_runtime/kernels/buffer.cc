#include "buffer.h"

#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "entry.h"
#include "modular_tf/tensor.h"

namespace mtf::kernels {
namespace {

alignas(kAlignment) char nothing[kAlignment];

// Lent memory that nobody has any more, until Python has been told. The buffers themselves are the list,
// so that neither a number nor its end needs memory, and forks find it whole.
std::atomic<Buffer*> released_lent{nullptr};
std::atomic<uint64_t> last_keeper{0};

std::atomic<const mtf_plugin_calls*> plugin_calls{nullptr};

void tell_released(Buffer* buffer) {
  buffer->next = released_lent.load(std::memory_order_relaxed);
  while (!released_lent.compare_exchange_weak(buffer->next, buffer, std::memory_order_release)) {
  }
}

void release_host(Buffer* buffer) {
  if (buffer->has_strings) {
    auto* strings = static_cast<TF_TString*>(buffer->data);
    for (size_t index = 0; index < buffer->size / sizeof *strings; ++index) {
      TF_StringDealloc(strings + index);
    }
  }
  std::free(buffer->data);
  delete buffer;
}

void release_device(Buffer* buffer) {
  buffer->place->free(buffer->place, buffer->owner, buffer->stream);
  delete buffer;
}

void give_back(void* ended) {
  const auto* buffer = static_cast<Buffer*>(ended);
  give_to_deallocator(buffer->deallocator, buffer->data, buffer->size, buffer->argument);
}

void release_of_plugin(Buffer* buffer) {
  const std::unique_ptr<Buffer> ended(buffer);
  const mtf_plugin_calls* calls = plugin_calls.load(std::memory_order_acquire);
  if (calls == nullptr || buffer->plugin == nullptr) return give_back(buffer);
  calls->run(buffer->plugin, "the deallocator of a tensor", give_back, buffer);
}

void release_lent(Buffer* buffer) {
  buffer->keeper == 0 ? delete buffer : tell_released(buffer);
}

BufferRef new_buffer(void (*release)(Buffer*)) {
  auto* buffer = new (std::nothrow) Buffer;
  if (buffer != nullptr) buffer->release = release;
  return BufferRef(buffer);
}

}  // namespace

BufferRef::~BufferRef() {
  if (buffer_ == nullptr) return;
  if (buffer_->references.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  buffer_->release(buffer_);
}

void give_to_deallocator(Deallocator deallocator, void* data, size_t size, void* argument) {
  if (deallocator == nullptr) return;
  try {
    deallocator(data, size, argument);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& error) {
    report_misuse_by(kRuleArguments, "a deallocator of TF_NewTensor threw: %s", error.what());
  } catch (...) {
    report_misuse_by(kRuleArguments, "a deallocator of TF_NewTensor threw an exception of an unknown type");
  }
}

void* empty_data() noexcept { return nothing; }

void attach_plugin_calls(const mtf_plugin_calls* calls) {
  plugin_calls.store(calls, std::memory_order_release);
}

BufferRef new_host_buffer(size_t size, bool has_strings) noexcept {
  BufferRef buffer = new_buffer(release_host);
  if (!buffer) return buffer;
  const size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded < size) return {};
  buffer->data = std::aligned_alloc(kAlignment, rounded == 0 ? kAlignment : rounded);
  if (buffer->data == nullptr) return {};
  if (has_strings) std::memset(buffer->data, 0, size);  // empty small strings
  buffer->size = size;
  buffer->is_own = true;
  buffer->has_strings = has_strings;
  return buffer;
}

BufferRef new_device_buffer(void* data, size_t size, void* owner,
                            const mtf_kernel_place* place) noexcept {
  BufferRef buffer = new_buffer(release_device);
  if (!buffer) return buffer;
  buffer->data = data;
  buffer->size = size;
  buffer->owner = owner;
  buffer->place = place;
  buffer->is_own = true;
  buffer->is_on_host = place->is_host != 0;
  return buffer;
}

BufferRef new_plugin_buffer(void* data, size_t size, Deallocator deallocator,
                            void* argument) noexcept {
  BufferRef buffer = new_buffer(release_of_plugin);
  if (!buffer) return buffer;
  buffer->data = data;
  buffer->size = size;
  buffer->deallocator = deallocator;
  const mtf_plugin_calls* calls = plugin_calls.load(std::memory_order_acquire);
  if (calls != nullptr) buffer->plugin = calls->plugin_of_this_thread();
  buffer->argument = argument;
  return buffer;
}

BufferRef new_lent_buffer(void* data, size_t size, bool is_on_host) noexcept {
  BufferRef buffer = new_buffer(release_lent);
  if (!buffer) return buffer;
  buffer->data = data;
  buffer->size = size;
  buffer->is_on_host = is_on_host;
  return buffer;
}

uint64_t new_keeper() noexcept {
  return last_keeper.fetch_add(1) + 1;
}

int32_t take_released_keepers(uint64_t* numbers, int32_t most) noexcept {
  int32_t taken = 0;
  Buffer* first = released_lent.exchange(nullptr, std::memory_order_acquire);
  for (; taken < most && first != nullptr; ++taken) {
    const std::unique_ptr<Buffer> told(std::exchange(first, first->next));
    numbers[taken] = told->keeper;
  }
  while (first != nullptr) tell_released(std::exchange(first, first->next));
  return taken;
}

}  // namespace mtf::kernels
