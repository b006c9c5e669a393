# find_package(nearfar): nearfar::hmalloc and nearfar::hmalloc_static.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/nearfar-targets.cmake")
