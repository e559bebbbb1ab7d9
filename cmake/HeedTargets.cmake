# One CMake target per folder. A target sees only its own headers and those of the targets it links: `#include
# "ops/mat.h"` from kernels/ does not compile. Each folder has an include directory that contains only a link to it.

function(heed_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
  # GCC 12 reports an overlap in "text" + std::to_string(n) that cannot occur (GCC bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  # Only MulAdd is fused: automatic contraction may differ between two copies of one loop, and change the last bit.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  if(HEED_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # Fuzz targets do not exercise SIMD code, which takes clang minutes to instrument.
  if(HEED_FUZZ)
    target_compile_definitions(${target} PRIVATE HWY_COMPILE_ONLY_STATIC)
    if(target STREQUAL "heed_kernels")
      return()
    endif()
  elseif(HEED_SANITIZE)
    # Fewer instruction sets build faster; the release build tests all of them. With the thread sanitizer, GCC 12 has an
    # internal compiler error in AVX-512 code (matmul.cc).
    set(disabled "HWY_SSSE3|HWY_SSE4")
    if(HEED_SANITIZE STREQUAL "thread")
      string(APPEND disabled "|HWY_AVX3|HWY_AVX3_DL")
    endif()
    target_compile_definitions(${target} PRIVATE "HWY_DISABLED_TARGETS=(${disabled})")
  endif()
  if(HEED_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${HEED_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${HEED_SANITIZE})
  endif()
endfunction()

# heed_sources(VARIABLE test|library [FOLDERS folder…] [EXCLUDE regex…]): the .cc files below this folder (or those
# folders of it) that belong to a test or to the library. Tests are *_test.cc and their support *_testing.cc;
# everything else is the library. A new file needs no entry anywhere.
function(heed_sources variable kind)
  cmake_parse_arguments(ARG "" "" "FOLDERS;EXCLUDE" ${ARGN})
  if(NOT ARG_FOLDERS)
    set(ARG_FOLDERS .)
  endif()
  set(files)
  foreach(folder ${ARG_FOLDERS})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${folder}/*.cc)
    list(APPEND files ${found})
  endforeach()
  if(kind STREQUAL "test")
    list(FILTER files INCLUDE REGEX "_(test|testing)\\.cc$")
  else()
    list(FILTER files EXCLUDE REGEX "_(test|testing)\\.cc$")
  endif()
  foreach(pattern ${ARG_EXCLUDE})
    list(FILTER files EXCLUDE REGEX ${pattern})
  endforeach()
  set(${variable} ${files} PARENT_SCOPE)
endfunction()

# heed_library(base DEPENDS Threads::Threads …): target heed_base, from all sources below this folder but those that
# match EXCLUDE, and from SOURCES that are generated.
function(heed_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;EXCLUDE;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target heed_${name})
  set(view ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)
  heed_sources(sources library EXCLUDE ${ARG_EXCLUDE})
  add_library(${target} STATIC ${sources} ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${view} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  # Static libraries become part of shared ones (the Python module, users' own libraries): position-independent, and
  # with hidden symbols so that calls stay direct and names cannot collide.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  heed_compile_options(${target})
endfunction()

# heed_test(base DEPENDS heed_base …): one test binary, its cases found by ctest. Its sources are the *_test.cc and
# *_testing.cc below this folder, or below FOLDERS, but for those that match EXCLUDE; or SOURCES alone.
# LABEL slow keeps a suite out of the default run.
function(heed_test name)
  if(NOT HEED_DEVELOPER_MODE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;FOLDERS;EXCLUDE;DEPENDS" ${ARGN})
  set(target ${name}_test)
  if(NOT ARG_SOURCES)
    heed_sources(ARG_SOURCES test FOLDERS ${ARG_FOLDERS} EXCLUDE ${ARG_EXCLUDE})
  endif()
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  # Tests run in the top folder, so object files do not contain its path and ccache can share them. ../shared
  # holds the data sets; tests that need one are skipped without it.
  target_compile_definitions(${target} PRIVATE HEED_TEST_DATA="tests" HEED_SHARED="../shared")
  heed_compile_options(${target})
  # Tests spend most time in the library; optimizing the tests themselves would double their build time.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  include(GoogleTest)
  gtest_discover_tests(${target} TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                       PROPERTIES LABELS "${ARG_LABEL}")
endfunction()
