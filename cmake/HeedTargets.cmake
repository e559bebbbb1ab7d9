# One CMake target a folder. A target sees its own headers and those of the targets it
# links, and no others: `#include "ops/mat.h"` from kernels/ does not compile. That works by
# giving each folder an include directory that holds nothing but a link to that folder.

function(heed_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor)
  # GCC 12 sees an overlap in "text" + std::to_string(n) that cannot be (its bug 105651).
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    target_compile_options(${target} PRIVATE -Wno-restrict)
  endif()
  # A multiplication and an addition are fused where we say so (MulAdd) and nowhere else: the choice
  # would otherwise differ between two copies of one loop, and with it the last bit.
  target_compile_options(${target} PRIVATE -ffp-contract=off)
  if(HEED_WERROR)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  # What is fuzzed has no SIMD code of its own, and clang takes minutes to instrument that.
  if(HEED_FUZZ)
    target_compile_definitions(${target} PRIVATE HWY_COMPILE_ONLY_STATIC)
    if(target STREQUAL "heed_kernels")
      return()
    endif()
  elseif(HEED_SANITIZE)
    # Fewer instruction sets, less time to build; the plain build tests all of them. With the thread
    # sanitizer GCC 12 breaks off at AVX-512 code (row_product.cc: internal compiler error).
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

# heed_library(base SOURCES error.cc … DEPENDS Threads::Threads …): target heed_base.
function(heed_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPENDS;PRIVATE_DEPENDS" ${ARGN})
  set(target heed_${name})
  set(view ${CMAKE_BINARY_DIR}/include/${name})
  file(MAKE_DIRECTORY ${view})
  file(CREATE_LINK ${CMAKE_CURRENT_SOURCE_DIR} ${view}/${name} SYMBOLIC)
  add_library(${target} STATIC ${ARG_SOURCES})
  target_include_directories(${target} PUBLIC ${view} ${PROJECT_SOURCE_DIR}/include)
  target_link_libraries(${target} PUBLIC ${ARG_DEPENDS} PRIVATE ${ARG_PRIVATE_DEPENDS})
  # Also part of shared libraries: Python's module, and those of others that use libheed.a. Hidden, a
  # name is still a direct call, and is nobody else's.
  set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  heed_compile_options(${target})
endfunction()

# heed_test(base arena_test.cc …): one test binary a folder, its cases found by ctest.
# LABEL slow keeps a suite out of the default run.
function(heed_test name)
  if(NOT HEED_DEVELOPER_MODE)
    return()
  endif()
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;DEPENDS" ${ARGN})
  set(target ${name}_test)
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_DEPENDS} GTest::gmock GTest::gtest_main)
  # Tests run from the top of the tree, so their objects are the same wherever that is. ../shared
  # holds the data sets; tests that want one skip where it is not.
  target_compile_definitions(${target} PRIVATE HEED_TEST_DATA="tests" HEED_SHARED="../shared")
  heed_compile_options(${target})
  # Most of a test's time goes to the library that it calls; half of its build goes to optimizing.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  include(GoogleTest)
  gtest_discover_tests(${target} TEST_PREFIX "${name}/" DISCOVERY_TIMEOUT 60
                       WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
                       PROPERTIES LABELS "${ARG_LABEL}")
endfunction()
