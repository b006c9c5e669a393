# Installs libhmalloc in the Python package, so that `nearfar run` finds it in a checkout and in a
# wheel; and for C and C++ programs with `cmake --install DIR --component hmalloc`: headers,
# libraries, hmalloc.pc, find_package(nearfar), hmalloc(3).
include(CMakePackageConfigHelpers)

if(NEARFAR_PYTHON)
  foreach(library hmalloc hmalloc_preload)
    install(FILES $<TARGET_FILE:${library}> DESTINATION nearfar COMPONENT python
            RENAME $<TARGET_FILE_PREFIX:${library}>$<TARGET_FILE_BASE_NAME:${library}>.so)
  endforeach()
endif()

install(TARGETS hmalloc hmalloc_static hmalloc_preload EXPORT hmalloc
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT hmalloc NAMELINK_COMPONENT hmalloc
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT hmalloc)
file(GLOB hmalloc_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/include/nearfar/hmalloc*)
install(FILES ${hmalloc_headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nearfar COMPONENT hmalloc)
install(FILES ${PROJECT_SOURCE_DIR}/include/nearfar/memkind/memkind.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nearfar/memkind COMPONENT hmalloc)
install(FILES ${PROJECT_SOURCE_DIR}/docs/man/hmalloc.3 DESTINATION ${CMAKE_INSTALL_MANDIR}/man3
        COMPONENT hmalloc)

configure_file(alloc/packaging/hmalloc.pc.in hmalloc.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/hmalloc.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT hmalloc)

if(NOT LIBPMEMOBJ_FOUND) # otherwise native/library.cmake has made them
  configure_package_config_file(nearfarConfig.cmake.in nearfarConfig.cmake
                                INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nearfar)
  write_basic_package_version_file(nearfarConfigVersion.cmake COMPATIBILITY SameMinorVersion)
endif()
install(EXPORT hmalloc NAMESPACE nearfar:: FILE hmallocTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nearfar COMPONENT hmalloc)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nearfarConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/nearfarConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nearfar COMPONENT hmalloc)
