# Headers of the standard library that sources include most, compiled once for each set of compiler
# options: a source then compiles in half of the time, as most of it is reading them. Sources still
# include what they use: builds with a compiler cache (CMakeLists.txt) and the preset `clang` precompile
# nothing.
set(NEARFAR_HEADERS
  <algorithm> <array> <atomic> <bit> <cerrno> <cinttypes> <cmath> <cstddef> <cstdint> <cstdio>
  <cstdlib> <cstring> <deque> <functional> <map> <memory> <mutex> <optional> <span> <string>
  <string_view> <unordered_map> <utility> <vector>)

# nearfar_headers(NAME KIND OPTIONS HEADERS...): a target from which others with the same options
# take HEADERS, by target_precompile_headers(TARGET REUSE_FROM NAME). KIND is EXECUTABLE for
# targets that are programs, OBJECT for all others, as their code is position-independent in different ways.
function(nearfar_headers name kind options)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${name}.cpp)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  if(kind STREQUAL EXECUTABLE)
    add_executable(${name} EXCLUDE_FROM_ALL ${source})
  else()
    add_library(${name} OBJECT EXCLUDE_FROM_ALL ${source})
  endif()
  target_link_libraries(${name} PRIVATE nearfar_options)
  target_compile_options(${name} PRIVATE ${options})
  target_precompile_headers(${name} PRIVATE ${ARGN})
endfunction()
