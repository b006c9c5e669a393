# libhmalloc: the layer `alloc` with the parts of base, os and tier that it uses, for C programs. All
# sources are compiled again without exceptions and run-time types, and linked by the C driver, so that
# the libraries depend on libc only (tests/test_hmalloc_elf.py).
set(hmalloc_uses os/address_space.cpp os/file.cpp os/library_descriptor.cpp os/lock.cpp os/mapping_calls.cpp os/numa.cpp os/objects.cpp
                 os/page_copier.cpp os/pages.cpp os/process.cpp os/signals.cpp os/unprepared_child.cpp tier/kinds.cpp tier/mapping.cpp
                 tier/spec.cpp)
file(GLOB hmalloc_sources CONFIGURE_DEPENDS alloc/*.cpp)
file(GLOB tier_kinds CONFIGURE_DEPENDS tier/kinds/*.cpp)
list(FILTER hmalloc_sources EXCLUDE REGEX "_test\\.cpp$")

add_library(nearfar_hmalloc_objects OBJECT ${hmalloc_sources} ${hmalloc_uses} ${tier_kinds})
target_link_libraries(nearfar_hmalloc_objects PUBLIC nearfar_options Threads::Threads)
target_include_directories(nearfar_hmalloc_objects PUBLIC ${PROJECT_SOURCE_DIR}/include
                                                  PRIVATE ${NEARFAR_GENERATED})
# malloc is on the fast path of every program: -O2 in all build types, but not in instrumented builds.
set(hmalloc_options
  -fno-exceptions -fno-rtti -fno-threadsafe-statics -ftls-model=initial-exec -ffunction-sections
  -fno-builtin-malloc -fno-builtin-free -fno-builtin-calloc -fno-builtin-realloc)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize=address")
  list(APPEND hmalloc_options -O2)
endif()
target_compile_options(nearfar_hmalloc_objects PRIVATE ${hmalloc_options})
target_precompile_headers(nearfar_hmalloc_objects PRIVATE ${NEARFAR_HEADERS})

file(GLOB preload_sources CONFIGURE_DEPENDS alloc/preload/*.cpp)
add_library(nearfar_preload_objects OBJECT ${preload_sources})
target_link_libraries(nearfar_preload_objects PRIVATE nearfar_options)
target_include_directories(nearfar_preload_objects PRIVATE ${PROJECT_SOURCE_DIR}/include)
# With frame pointers: a plan follows them from malloc() outwards.
target_compile_options(nearfar_preload_objects PRIVATE ${hmalloc_options} -fno-omit-frame-pointer)

add_library(hmalloc SHARED $<TARGET_OBJECTS:nearfar_hmalloc_objects>)
add_library(hmalloc_static STATIC $<TARGET_OBJECTS:nearfar_hmalloc_objects>)
add_library(hmalloc_preload SHARED $<TARGET_OBJECTS:nearfar_hmalloc_objects>
                                   $<TARGET_OBJECTS:nearfar_preload_objects>)
set_target_properties(hmalloc_preload PROPERTIES OUTPUT_NAME hmalloc-preload)
set_target_properties(hmalloc PROPERTIES VERSION 1.0 SOVERSION 1)
set_target_properties(hmalloc_static PROPERTIES OUTPUT_NAME hmalloc)
foreach(library hmalloc hmalloc_static hmalloc_preload)
  set_target_properties(${library} PROPERTIES LINKER_LANGUAGE C)
  target_include_directories(${library} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${library} PUBLIC Threads::Threads)
endforeach()
foreach(library hmalloc hmalloc_preload)
  target_link_options(${library} PRIVATE -Wl,-z,now -Wl,--gc-sections -static-libgcc)
  if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize") # whose run-time library is in the program
    target_link_options(${library} PRIVATE -Wl,--no-undefined)
  endif()
endforeach()

if(NEARFAR_TESTS)
  file(GLOB alloc_tests CONFIGURE_DEPENDS alloc/*_test.cpp)
  nearfar_test(alloc_test alloc ${alloc_tests})
  target_link_libraries(alloc_test PRIVATE hmalloc_static nearfar_os)
  nearfar_test(alloc_profiler_test alloc alloc/checks/profiler_test.cpp)
  target_link_libraries(alloc_profiler_test PRIVATE hmalloc_static nearfar_os)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    add_test(NAME "alloc: clang reports violations of the lock order"
             COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -fsyntax-only -Wthread-safety
                     -Wthread-safety-beta -Xclang -verify -I${PROJECT_SOURCE_DIR}/native
                     -I${PROJECT_SOURCE_DIR}/include
                     ${CMAKE_CURRENT_SOURCE_DIR}/alloc/checks/lock_order.cpp)
  endif()
endif()
