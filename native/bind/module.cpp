#include "bind/convert.hpp"

NB_MODULE(_native, module) {
  module.doc() = "The native core of nearfar; units are in the names. Not a public interface.";
  nearfar::bind::register_errors(module);
  nearfar::bind::register_os(module);
  nearfar::bind::register_pages(module);
  nearfar::bind::register_tier(module);
  nearfar::bind::register_topo(module);
  nearfar::bind::register_probe(module);
  nearfar::bind::register_cache(module);
  nearfar::bind::register_perf(module);
  nearfar::bind::register_inspect(module);
  nearfar::bind::register_trace(module);
  nearfar::bind::register_sample(module);
  nearfar::bind::register_sim(module);
  nearfar::bind::register_interleave(module);
  nearfar::bind::register_stalls(module);
  nearfar::bind::register_bench(module);
  nearfar::bind::register_together(module);
#ifdef NEARFAR_HAVE_LIBPMEMOBJ
  nearfar::bind::register_structures(module);
  nearfar::bind::register_map(module);
  nearfar::bind::register_intset(module);
#endif
}
