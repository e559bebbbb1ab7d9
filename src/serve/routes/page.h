// The files of web/, embedded by CMake.
#pragma once

#include <span>
#include <string_view>

namespace heed::serve {

struct PageFile {
  std::string_view name;  // "index.html"
  std::string_view content;
};
std::span<const PageFile> page_files();

}  // namespace heed::serve
