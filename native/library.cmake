# The library for C++ programs: what <nearfar/persist.hpp> and the structures need, as one archive,
# with a package for CMake (find_package(nearfar)) and one for pkg-config.
# cmake --install DIR --component development
include(CMakePackageConfigHelpers)

set(parts os tier storelog persist structures)
list(TRANSFORM parts REPLACE "(.+)" "$<TARGET_OBJECTS:nearfar_\\1>" OUTPUT_VARIABLE objects)
add_library(nearfar STATIC ${objects})
add_library(nearfar::nearfar ALIAS nearfar)
set_target_properties(nearfar PROPERTIES LINKER_LANGUAGE CXX)
target_compile_features(nearfar PUBLIC cxx_std_20)
target_compile_options(nearfar PUBLIC -msse4.2) # CRC32C
target_include_directories(nearfar PUBLIC
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/native>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/nearfar/core>)
target_link_libraries(nearfar PUBLIC PkgConfig::LIBPMEMOBJ Threads::Threads)
set(also_required "")
if(LIBURING_FOUND)
  target_link_libraries(nearfar PUBLIC PkgConfig::LIBURING)
  set(also_required liburing)
endif()

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/nearfar)
configure_package_config_file(nearfarConfig.cmake.in nearfarConfig.cmake
                              INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(nearfarConfigVersion.cmake COMPATIBILITY SameMinorVersion)
configure_file(nearfar.pc.in nearfar.pc @ONLY)
install(TARGETS nearfar EXPORT nearfar COMPONENT development)
install(EXPORT nearfar NAMESPACE nearfar:: FILE nearfarTargets.cmake DESTINATION ${config_dir}
        COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nearfarConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/nearfarConfigVersion.cmake
        DESTINATION ${config_dir} COMPONENT development)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nearfar.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT development)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/nearfar DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development PATTERN "hmalloc*" EXCLUDE PATTERN "sim.h" EXCLUDE)
install(DIRECTORY base poolformat ${parts} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nearfar/core
        COMPONENT development FILES_MATCHING PATTERN "*.hpp" PATTERN "test_*" EXCLUDE)
