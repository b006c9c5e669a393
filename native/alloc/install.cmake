# Where libhmalloc goes. Into the Python package, so that `nearfar run` finds it in a checkout and in a
# wheel alike; and with `cmake --install`, for C and C++ programs: header, libraries, hmalloc.pc,
# find_package(nearfar), hmalloc(3).
if(NEARFAR_PYTHON)
  foreach(library hmalloc hmalloc_preload)
    install(FILES $<TARGET_FILE:${library}> DESTINATION nearfar
            RENAME $<TARGET_FILE_PREFIX:${library}>$<TARGET_FILE_BASE_NAME:${library}>.so)
  endforeach()
endif()
if(DEFINED SKBUILD) # a wheel holds the package alone
  return()
endif()

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS hmalloc hmalloc_static hmalloc_preload EXPORT nearfar-targets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/nearfar DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/hmalloc.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3)

set(HMALLOC_VERSION 1.0)
file(RELATIVE_PATH HMALLOC_PC_TO_PREFIX /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
configure_file(alloc/packaging/hmalloc.pc.in hmalloc.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hmalloc.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(config ${CMAKE_INSTALL_LIBDIR}/cmake/nearfar)
install(EXPORT nearfar-targets NAMESPACE nearfar:: DESTINATION ${config})
write_basic_package_version_file(nearfar-config-version.cmake VERSION ${HMALLOC_VERSION}
                                 COMPATIBILITY SameMajorVersion)
install(FILES alloc/packaging/nearfar-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/nearfar-config-version.cmake DESTINATION ${config})
