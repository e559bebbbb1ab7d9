// Values as TOML writes them.
#pragma once

#include <cmath>
#include <string>

#include "model/hugging_face/json_values.h"

namespace heed {

// JSON text is TOML text, except for numbers that JSON does not have.
inline std::string toml_text(const Json& value) {
  if (!value.is_number_float()) return value.dump();
  const auto number = value.get<double>();
  if (std::isnan(number)) return "nan";
  return std::isfinite(number) ? value.dump() : number > 0 ? "inf" : "-inf";
}

}  // namespace heed
