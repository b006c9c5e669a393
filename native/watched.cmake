# Options of code that is watched while it runs: the compiler inserts a call before each read and write.
# Copies must stay calls, which are seen: those expanded in place are not instrumented.
set(NEARFAR_WATCHED -fsanitize=thread -O2
  -fno-builtin-memcpy -fno-builtin-memmove -fno-builtin-memset -fno-builtin-memcmp
  -fno-tree-loop-distribute-patterns
  $<$<CXX_COMPILER_ID:GNU>:--param=tsan-instrument-func-entry-exit=0
                           -mmemcpy-strategy=libcall:-1:align
                           -mmemset-strategy=libcall:-1:align>)
nearfar_headers(nearfar_watched_headers OBJECT "${NEARFAR_WATCHED}" ${NEARFAR_HEADERS})

if(LIBPMEMOBJ_FOUND) # used by `nearfar-crash` and `nearfar-miss-counter`
  file(GLOB watched_structures CONFIGURE_DEPENDS structures/*.cpp)
  list(FILTER watched_structures EXCLUDE REGEX "_test\\.cpp$")
  add_library(nearfar_watched_structures OBJECT ${watched_structures})
  target_compile_options(nearfar_watched_structures PRIVATE ${NEARFAR_WATCHED})
  target_precompile_headers(nearfar_watched_structures REUSE_FROM nearfar_watched_headers)
  target_link_libraries(nearfar_watched_structures PRIVATE nearfar_persist)
endif()
