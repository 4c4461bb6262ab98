// Faults on their way out, as a TF_Status.
#pragma once

#include "account.h"
#include "fault.h"
#include "modular_tf/status.h"

namespace ram {

// The message is "[label] subject; text of the fault", without the brackets when there is no label.
void report(Fault fault, const Account& account, const char* subject, TF_Status* status);

}  // namespace ram
