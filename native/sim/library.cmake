# libnearfar-sim: a memory in the exact engine behind a C interface (include/nearfar/sim.h), for
# simulators in C and C++. It needs the C library only, so that it runs next to any C++ library.
# cmake --install DIR --component sim
set(sim_symbols ${CMAKE_CURRENT_SOURCE_DIR}/sim/library/symbols.map)
add_library(nearfar_sim_library SHARED sim/library/api.cpp)
set_target_properties(nearfar_sim_library PROPERTIES
  OUTPUT_NAME nearfar-sim EXPORT_NAME sim VERSION 1.0 SOVERSION 1 LINK_DEPENDS ${sim_symbols})
target_include_directories(nearfar_sim_library INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(nearfar_sim_library PRIVATE nearfar_sim)
# as-needed: the layers below read compressed traces, which this library does not.
target_link_options(nearfar_sim_library PRIVATE -Wl,--as-needed -Wl,-z,now
  -Wl,--version-script=${sim_symbols} -static-libstdc++ -static-libgcc)

if(NEARFAR_TESTS)
  nearfar_test(sim_library_test "sim library" sim/library/api_test.cpp)
  target_link_libraries(sim_library_test PRIVATE nearfar_sim_library)
endif()

install(TARGETS nearfar_sim_library EXPORT sim
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT sim NAMELINK_COMPONENT sim)
install(FILES ${PROJECT_SOURCE_DIR}/include/nearfar/sim.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/nearfar COMPONENT sim)
configure_file(sim/library/nearfar-sim.pc.in nearfar-sim.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nearfar-sim.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT sim)
install(EXPORT sim NAMESPACE nearfar:: FILE simTargets.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nearfar COMPONENT sim)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/nearfarConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/nearfarConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/nearfar COMPONENT sim)
