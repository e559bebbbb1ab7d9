# `cmake --install`: the command, the public headers, all folders as one static library, libheed.a, and files for CMake
# and pkg-config:
#
#   find_package(heed REQUIRED)
#   target_link_libraries(mine PRIVATE heed::heed)
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(objects)
foreach(folder base bindings data infer kernels model ops text train)
  list(APPEND objects $<TARGET_OBJECTS:heed_${folder}>)
endforeach()
add_library(heed_package STATIC ${objects})
add_library(heed::heed ALIAS heed_package)  # the same name with add_subdirectory()
set_target_properties(heed_package PROPERTIES OUTPUT_NAME heed EXPORT_NAME heed LINKER_LANGUAGE CXX)
target_compile_features(heed_package INTERFACE cxx_std_20)
target_include_directories(heed_package INTERFACE
                           $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# heed-config.cmake finds these on the machine that uses the package.
target_link_libraries(heed_package PRIVATE DNNL::dnnl hwy::hwy OpenMP::OpenMP_CXX ICU::uc ZLIB::ZLIB
                      PkgConfig::pcre2 PkgConfig::sentencepiece PkgConfig::zstd Threads::Threads
                      tomlplusplus::tomlplusplus)

# What was not built is left out: `cmake --build … --target heed` and `cmake --install` install the command alone.
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/heed)
install(TARGETS heed RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT command)
if(TARGET heed_mpi)
  install(TARGETS heed_mpi LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT mpi OPTIONAL)
endif()
install(TARGETS heed_package EXPORT heed-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT development OPTIONAL)
# The benchmarks and the server are linked into the command only.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/heed DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        COMPONENT development
        FILES_MATCHING PATTERN "*.h" PATTERN "bench.h" EXCLUDE PATTERN "serve.h" EXCLUDE)
install(EXPORT heed-targets NAMESPACE heed:: DESTINATION ${package_folder}
        COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/heed-config.cmake.in heed-config.cmake
                              INSTALL_DESTINATION ${package_folder})
# A new MINOR may change the API: it changes when old models stop loading.
write_basic_package_version_file(heed-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/heed-config-version.cmake
        DESTINATION ${package_folder} COMPONENT development)

list(TRANSFORM OpenMP_CXX_LIB_NAMES PREPEND "-l" OUTPUT_VARIABLE openmp_libraries)
list(JOIN openmp_libraries " " openmp_libraries)
configure_file(${CMAKE_CURRENT_LIST_DIR}/heed.pc.in heed.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/heed.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
        COMPONENT development)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/CHANGELOG.md
        DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT command)

# The bundled models.
foreach(model en-de shakespeare)
  if(EXISTS ${PROJECT_SOURCE_DIR}/models/${model}/config.json)
    install(DIRECTORY ${PROJECT_SOURCE_DIR}/models/${model} DESTINATION ${CMAKE_INSTALL_DATADIR}/heed/models
            COMPONENT command)
  endif()
endforeach()

# The manual page and shell completions, generated from the command's help; not when cross-compiling or in test builds.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CROSSCOMPILING AND NOT HEED_SANITIZE AND NOT HEED_FUZZ)
  set(help ${PROJECT_BINARY_DIR}/help)
  set(help_files ${help}/heed.1.gz ${help}/heed ${help}/_heed ${help}/heed.fish)
  set(help_script ${PROJECT_SOURCE_DIR}/scripts/help-files)
  add_custom_command(OUTPUT ${help_files}
                     COMMAND ${help_script} $<TARGET_FILE:heed> ${help}
                     COMMAND gzip -9nf ${help}/heed.1
                     DEPENDS heed ${help_script}
                     COMMENT "Writing the manual page and completions" VERBATIM)
  add_custom_target(heed_help ALL DEPENDS ${help_files})
  install(FILES ${help}/heed.1.gz DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT command OPTIONAL)
  install(FILES ${help}/heed DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          COMPONENT command OPTIONAL)
  install(FILES ${help}/_heed DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions
          COMPONENT command OPTIONAL)
  install(FILES ${help}/heed.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d
          COMPONENT command OPTIONAL)
endif()

# Debian packages: scripts/package. The MPI module is a separate package, because few users need MPI.
if(PROJECT_IS_TOP_LEVEL)
  set(CPACK_GENERATOR DEB)
  set(CPACK_PACKAGE_NAME heed)
  set(CPACK_PACKAGE_CONTACT "The Heed developers")
  set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
  set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
  set(CPACK_STRIP_FILES ON)
  set(CPACK_COMPONENTS_ALL command development)
  set(CPACK_COMPONENTS_GROUPING IGNORE)
  set(CPACK_DEB_COMPONENT_INSTALL ON)
  set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
  set(CPACK_DEBIAN_PACKAGE_SECTION science)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)  # Depends: from the packages of the libraries

  set(CPACK_DEBIAN_COMMAND_PACKAGE_NAME heed)
  set(CPACK_COMPONENT_COMMAND_DESCRIPTION
      "Trains, translates, generates, classifies and inspects Transformers on ordinary CPUs.")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_NAME libheed-dev)
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_SECTION libdevel)
  set(CPACK_COMPONENT_DEVELOPMENT_DESCRIPTION "The library, for C++ and C programs that use Heed.")
  set(CPACK_DEBIAN_DEVELOPMENT_PACKAGE_DEPENDS
      "libdnnl-dev, libhwy-dev, libicu-dev, libpcre2-dev, libsentencepiece-dev, libtomlplusplus-dev, libzstd-dev, ocl-icd-opencl-dev, pkg-config, zlib1g-dev")
  if(TARGET heed_mpi)
    list(APPEND CPACK_COMPONENTS_ALL mpi)
    set(CPACK_DEBIAN_MPI_PACKAGE_NAME heed-mpi)
    set(CPACK_COMPONENT_MPI_DESCRIPTION "Lets heed train on several machines, under mpirun.")
    set(CPACK_DEBIAN_MPI_PACKAGE_DEPENDS "heed (= ${PROJECT_VERSION})")
  endif()
  if(TARGET heed_python)
    list(APPEND CPACK_COMPONENTS_ALL python)
    set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-heed)
    set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
    set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Lets Python programs use Heed: import heed.")
    get_target_property(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS heed_python VERSIONS)
  endif()
  # Each Debian package installs the license; `cmake --install` needs it once.
  foreach(component ${CPACK_COMPONENTS_ALL})
    string(TOUPPER ${component} name)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright COMPONENT ${component} EXCLUDE_FROM_ALL
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${name}_PACKAGE_NAME})
  endforeach()
  # Targets of scripts/package; heed builds the MPI module too.
  add_custom_target(heed_packages)
  foreach(part heed heed_package heed_help heed_python)
    if(TARGET ${part})
      add_dependencies(heed_packages ${part})
    endif()
  endforeach()
  include(CPack)
endif()
