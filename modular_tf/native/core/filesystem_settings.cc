#include "filesystem_settings.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "copied_text.h"
#include "filesystem_state.h"
#include "lent_options.h"
#include "library.h"
#include "option_blocks.h"

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
  if (result == -1 && status->code == TF_OK) {
    mtf_status_set(status, TF_INTERNAL, "the plugin returned -1 with an OK status");
  }
}

void require_token(int result, void* token, TF_Status* status) {
  require_success(result, status);
  if (status->code == TF_OK && token == nullptr) {
    mtf_status_set(status, TF_INTERNAL, "the plugin returned no token with an OK status");
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

// The text of a token without one of the plugin's; it is the plugin's, so it may lie anywhere.
Error addresses_in(const TF_TransactionToken* token, char** text) {
  TF_TransactionToken found;
  char made[96];
  if (mtf_try_read(token, &found, sizeof found) == 0) {
    std::snprintf(made, sizeof made, "token at %p, which cannot be read",
                  static_cast<const void*>(token));
  } else {
    std::snprintf(made, sizeof made, "token %#zx, owner %#zx",
                  reinterpret_cast<size_t>(found.token), reinterpret_cast<size_t>(found.owner));
  }
  *text = mtf_copied_text(made);
  return *text != nullptr ? nullptr : mtf::make_error(TF_RESOURCE_EXHAUSTED,
                                                      "no memory for the text of a transaction");
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
  const auto* const given = static_cast<const TF_TransactionToken*>(token);
  const auto operation = filesystem->tables->filesystem.decode_transaction_token;
  const mtf::SlotsInWorker* const in_worker = filesystem->in_worker;
  if (operation == nullptr && in_worker == nullptr) return addresses_in(given, text);
  return in_use(filesystem, "decode_transaction_token", [&](TF_Status* status) {
    char* made = in_worker != nullptr
                     ? in_worker->decode_transaction_token(&filesystem->handle, given, status)
                     : operation(&filesystem->handle, given);
    if (status->code != TF_OK) return;
    if (made == nullptr) return mtf_status_set(status, TF_INTERNAL, "the plugin returned NULL");
    *text = mtf_copied_text(made);
    if (*text == nullptr) mtf_status_set(status, TF_RESOURCE_EXHAUSTED,
                                         "no memory for the text of a transaction");
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
    if (status->code == TF_OK && (*count < 0 || (*count > 0 && *options == nullptr))) {
      mtf_status_set(status, TF_INTERNAL, "the plugin returned a count that does not fit its array");
    }
  });
}

extern "C" mtf_error* mtf_get_configuration_option(mtf_filesystem* filesystem, const char* key,
                                                   mtf_option** option) {
  const auto operation = filesystem->tables->filesystem.get_filesystem_configuration_option;
  if (operation == nullptr) return mtf::missing_operation("get_filesystem_configuration_option");
  return in_use(filesystem, "get_filesystem_configuration_option", [&](TF_Status* status) {
    operation(&filesystem->handle, key, reinterpret_cast<TF_Filesystem_Option**>(option), status);
    if (status->code == TF_OK && *option == nullptr) {
      mtf_status_set(status, TF_INTERNAL, "the plugin returned no option with an OK status");
    }
  });
}

extern "C" void mtf_options_free(mtf_filesystem* filesystem, mtf_option* options, int count) {
  mtf::release_options(options, count, [filesystem](void* memory) {
    mtf::free_by_plugin(filesystem->plugin, filesystem->tables->plugin_free, memory);
  });
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
