// Any bytes as a model's config.json and generation_config.json, separated by a NUL: the generation
// settings.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz_folder.h"
#include "heed/error.h"
#include "infer/search/generation_settings.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using Json = nlohmann::json;
  const auto [config, generation] =
      heed::fuzz::split_at_nul({reinterpret_cast<const char*>(data), size});
  const auto parse = [](std::string_view text) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    return json.is_discarded() ? Json() : json;
  };
  try {
    heed::read_generation_settings(parse(config), parse(generation), "input");
  } catch (const heed::Error& error) {
    if (error.code() == heed::ErrorCode::internal) std::abort();
  }
  return 0;
}
