// The one thing that C cannot do: an exception that leaves the plugin.
#include <stdexcept>

extern "C" void fixture_throw(const char* what) { throw std::runtime_error(what); }
