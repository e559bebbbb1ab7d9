# What `cmake --install` leaves for other programs: the command, the public headers, all folders as
# one archive, libheed.a, and what lets CMake and pkg-config find it:
#
#   find_package(heed REQUIRED)
#   target_link_libraries(mine PRIVATE heed::heed)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(objects)
foreach(folder base data infer kernels model ops text train)
  list(APPEND objects $<TARGET_OBJECTS:heed_${folder}>)
endforeach()
add_library(heed_package STATIC ${objects})
add_library(heed::heed ALIAS heed_package)  # the same name with add_subdirectory()
set_target_properties(heed_package PROPERTIES OUTPUT_NAME heed EXPORT_NAME heed LINKER_LANGUAGE CXX)
target_compile_features(heed_package INTERFACE cxx_std_20)
target_include_directories(heed_package INTERFACE
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# heed-config.cmake finds these again on the machine that uses the package.
target_link_libraries(heed_package PRIVATE DNNL::dnnl hwy::hwy OpenMP::OpenMP_CXX ICU::uc ZLIB::ZLIB
                      PkgConfig::pcre2 PkgConfig::sentencepiece PkgConfig::zstd Threads::Threads)

set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/heed)
install(TARGETS heed RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET heed_mpi)
  install(TARGETS heed_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endif()
install(TARGETS heed_package EXPORT heed-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
# Heed's own measurements are the command's business.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/heed DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "bench.h" EXCLUDE)
install(EXPORT heed-targets NAMESPACE heed:: DESTINATION ${package_folder})
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/heed-config.cmake.in heed-config.cmake
                              INSTALL_DESTINATION ${package_folder})
# The middle digit moves when old models stop loading, and what programs see may change then too.
write_basic_package_version_file(heed-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/heed-config-version.cmake
        DESTINATION ${package_folder})

list(TRANSFORM OpenMP_CXX_LIB_NAMES PREPEND "-l" OUTPUT_VARIABLE openmp_libraries)
list(JOIN openmp_libraries " " openmp_libraries)
configure_file(${CMAKE_CURRENT_LIST_DIR}/heed.pc.in heed.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
