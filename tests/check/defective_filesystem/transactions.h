// Transactions that do nothing but exist: the reference plugin has none.
#pragma once

#include "defects.h"

namespace defective {

// Puts all six slots into the table.
void add_transactions(Tables& tables);

// The slots, for defects that call on.
int start_transaction(const TF_Filesystem*, TF_TransactionToken** token, TF_Status* status);
int end_transaction(const TF_Filesystem*, TF_TransactionToken* token, TF_Status* status);
int get_transaction_for_path(const TF_Filesystem*, const char* path, TF_TransactionToken** token,
                             TF_Status* status);

}  // namespace defective
