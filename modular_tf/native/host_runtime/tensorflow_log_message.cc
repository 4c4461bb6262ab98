// The same class under the name it had before TensorFlow 2.11; tensorflow-directml-plugin needs it.
#include "tsl_log_message.h"

namespace tensorflow {
namespace internal {

class LogMessageFatal : public tsl::internal::LogMessageFatal {
 public:
  TF_CAPI_EXPORT LogMessageFatal(const char* file_name, int line);
  TF_CAPI_EXPORT ~LogMessageFatal() override;
};

LogMessageFatal::LogMessageFatal(const char* file_name, int line)
    : tsl::internal::LogMessageFatal(file_name, line) {}

LogMessageFatal::~LogMessageFatal() { write_and_abort(__builtin_return_address(0)); }

}  // namespace internal
}  // namespace tensorflow
