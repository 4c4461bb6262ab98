#include "filesystem_settings.h"

#include <utility>

#include "copied_text.h"
#include "filesystem_state.h"
#include "lent_options.h"

using mtf::Error;
using mtf::FilesystemUse;
using mtf::guarded;
using mtf::on_path;

static_assert(sizeof(mtf_option) == sizeof(TF_Filesystem_Option), "one layout, two names");
static_assert(sizeof(mtf_option_value) == sizeof(TF_Filesystem_Option_Value), "one layout");
static_assert(sizeof(mtf_option_item) == sizeof(TF_Filesystem_Option_Value_Union), "one layout");

namespace {

// Transaction slots return an int of which the header defines only -1.
void require_success(int result, TF_Status* status) {
  if (result == -1 && status->code == 0) {
    mtf_status_set(status, 13, "the plugin returned -1 with an OK status");
  }
}

void require_token(int result, void* token, TF_Status* status) {
  require_success(result, status);
  if (status->code == 0 && token == nullptr) {
    mtf_status_set(status, 13, "the plugin returned no token with an OK status");
  }
}

template <class Call>
Error in_use(mtf_filesystem* filesystem, const char* operation, Call&& call) {
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  return guarded({filesystem->plugin, operation}, std::forward<Call>(call));
}

// Runs call(options in memory of the plugin's allocator, status).
template <class Call>
Error with_options(mtf_filesystem* filesystem, const mtf_option* options, int count,
                   const char* operation, Call&& call) {
  FilesystemUse use(filesystem);
  if (!use) return mtf::closed_filesystem_error();
  mtf::LentOptions lent(*filesystem);
  if (Error error = lent.copy(options, count)) return error;
  return guarded({filesystem->plugin, operation},
                 [&](TF_Status* status) { call(lent.get(), status); });
}

TF_TransactionToken* as_token(void* token) { return static_cast<TF_TransactionToken*>(token); }

template <auto Slot>
Error token_for_path(mtf_filesystem* filesystem, const char* path, void** token,
                     const char* name) {
  const auto operation = filesystem->tables->filesystem.*Slot;
  if (operation == nullptr) return mtf::missing_operation(name);
  return on_path(filesystem, name, path, [&](const char* translated, TF_Status* status) {
    TF_TransactionToken* made = nullptr;
    const int result = operation(&filesystem->handle, translated, &made, status);
    *token = made;
    require_token(result, made, status);
  });
}

}  // namespace

extern "C" mtf_error* mtf_start_transaction(mtf_filesystem* filesystem, void** token) {
  const auto operation = filesystem->tables->filesystem.start_transaction;
  if (operation == nullptr) return mtf::missing_operation("start_transaction");
  return in_use(filesystem, "start_transaction", [&](TF_Status* status) {
    TF_TransactionToken* made = nullptr;
    const int result = operation(&filesystem->handle, &made, status);
    *token = made;
    require_token(result, made, status);
  });
}

extern "C" mtf_error* mtf_end_transaction(mtf_filesystem* filesystem, void* token) {
  const auto operation = filesystem->tables->filesystem.end_transaction;
  if (operation == nullptr) return mtf::missing_operation("end_transaction");
  return in_use(filesystem, "end_transaction", [&](TF_Status* status) {
    require_success(operation(&filesystem->handle, as_token(token), status), status);
  });
}

extern "C" mtf_error* mtf_add_to_transaction(mtf_filesystem* filesystem, const char* path,
                                             void* token) {
  const auto operation = filesystem->tables->filesystem.add_to_transaction;
  if (operation == nullptr) return mtf::missing_operation("add_to_transaction");
  return on_path(filesystem, "add_to_transaction", path,
                 [&](const char* translated, TF_Status* status) {
    require_success(operation(&filesystem->handle, translated, as_token(token), status), status);
  });
}

extern "C" mtf_error* mtf_get_transaction_for_path(mtf_filesystem* filesystem, const char* path,
                                                   void** token) {
  return token_for_path<&TF_FilesystemOps::get_transaction_for_path>(filesystem, path, token,
                                                                     "get_transaction_for_path");
}

extern "C" mtf_error* mtf_get_or_start_transaction_for_path(mtf_filesystem* filesystem,
                                                            const char* path, void** token) {
  return token_for_path<&TF_FilesystemOps::get_or_start_transaction_for_path>(
      filesystem, path, token, "get_or_start_transaction_for_path");
}

extern "C" mtf_error* mtf_decode_transaction_token(mtf_filesystem* filesystem, const void* token,
                                                   char** text) {
  const auto operation = filesystem->tables->filesystem.decode_transaction_token;
  if (operation == nullptr) return mtf::missing_operation("decode_transaction_token");
  return in_use(filesystem, "decode_transaction_token", [&](TF_Status* status) {
    char* made = operation(&filesystem->handle, static_cast<const TF_TransactionToken*>(token));
    if (made == nullptr) return mtf_status_set(status, 13, "the plugin returned NULL");
    *text = mtf_copied_text(made);
    if (*text == nullptr) mtf_status_set(status, 8, "no memory for the text of a transaction");
    mtf::free_by_plugin(filesystem->plugin, filesystem->tables->plugin_free, made);
  });
}

extern "C" mtf_error* mtf_get_configuration(mtf_filesystem* filesystem, mtf_option** options,
                                            int* count) {
  const auto operation = filesystem->tables->filesystem.get_filesystem_configuration;
  if (operation == nullptr) return mtf::missing_operation("get_filesystem_configuration");
  return in_use(filesystem, "get_filesystem_configuration", [&](TF_Status* status) {
    operation(&filesystem->handle, reinterpret_cast<TF_Filesystem_Option**>(options), count,
              status);
    if (status->code == 0 && (*count < 0 || (*count > 0 && *options == nullptr))) {
      mtf_status_set(status, 13, "the plugin returned a count that does not fit its array");
    }
  });
}

extern "C" mtf_error* mtf_get_configuration_option(mtf_filesystem* filesystem, const char* key,
                                                   mtf_option** option) {
  const auto operation = filesystem->tables->filesystem.get_filesystem_configuration_option;
  if (operation == nullptr) return mtf::missing_operation("get_filesystem_configuration_option");
  return in_use(filesystem, "get_filesystem_configuration_option", [&](TF_Status* status) {
    operation(&filesystem->handle, key, reinterpret_cast<TF_Filesystem_Option**>(option), status);
    if (status->code == 0 && *option == nullptr) {
      mtf_status_set(status, 13, "the plugin returned no option with an OK status");
    }
  });
}

extern "C" void mtf_options_free(mtf_filesystem* filesystem, mtf_option* options, int count) {
  const auto release = [filesystem](void* memory) {
    mtf::free_by_plugin(filesystem->plugin, filesystem->tables->plugin_free, memory);
  };
  for (int i = 0; options != nullptr && i < count; ++i) {
    mtf_option_value* value = options[i].value;
    const bool has_buffers = value != nullptr && value->type_tag == 2 && value->values != nullptr;
    for (int j = 0; has_buffers && j < value->num_values; ++j) {
      release(value->values[j].buffer.bytes);
    }
    if (value != nullptr) release(value->values);
    release(value);
    release(options[i].name);
    release(options[i].description);
  }
  release(options);
}

extern "C" mtf_error* mtf_set_configuration(mtf_filesystem* filesystem, const mtf_option* options,
                                            int count) {
  const auto operation = filesystem->tables->filesystem.set_filesystem_configuration;
  if (operation == nullptr) return mtf::missing_operation("set_filesystem_configuration");
  return with_options(filesystem, options, count, "set_filesystem_configuration",
                      [&](const TF_Filesystem_Option* lent, TF_Status* status) {
    operation(&filesystem->handle, lent, count, status);
  });
}

extern "C" mtf_error* mtf_set_configuration_option(mtf_filesystem* filesystem,
                                                   const mtf_option* option) {
  const auto operation = filesystem->tables->filesystem.set_filesystem_configuration_option;
  if (operation == nullptr) return mtf::missing_operation("set_filesystem_configuration_option");
  return with_options(filesystem, option, 1, "set_filesystem_configuration_option",
                      [&](const TF_Filesystem_Option* lent, TF_Status* status) {
    operation(&filesystem->handle, lent, status);
  });
}
