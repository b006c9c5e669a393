// A type that owns memory elsewhere.
// expected: storable: the type is not trivially copyable
#include "common.hpp"
#include <string>
field<std::string> f;
