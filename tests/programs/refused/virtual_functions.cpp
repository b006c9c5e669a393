// A hidden pointer to a table of functions.
// expected: storable: the type (has no standard layout|is not trivially copyable)
#include "common.hpp"
struct shape {
  virtual void draw();
};
field<shape> f;
