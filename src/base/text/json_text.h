// A JSON document as text. A template, so that base does not depend on a JSON library.
#pragma once

#include <string>

namespace heed {

// Bytes that are not UTF-8 become U+FFFD instead of an exception: model output may end within a
// character. `indent` -1: on one line.
template <class Json>
std::string json_text(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', /*ensure_ascii=*/false, Json::error_handler_t::replace);
}

}  // namespace heed
