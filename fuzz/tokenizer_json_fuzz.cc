// Any bytes as a tokenizer.json: an ordinary Error, or a tokenizer that encodes and decodes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "heed/error.h"
#include "text/tokenizer_json/json_tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_discarded()) return 0;
  try {
    const heed::TokenizerPtr tokenizer = heed::make_json_tokenizer(document, {});
    for (const std::string_view sample : {"Hello, wörld's 12 x", " \n[MASK] <s>\xFF▁a"}) {
      const heed::Encoding encoding = tokenizer->encode(sample);
      if (encoding.ids != tokenizer->encode_ids(sample)) std::abort();
      for (const int32_t id : encoding.ids) {
        // A template may name ids outside the vocabulary.
        if (id < tokenizer->vocabulary_size()) tokenizer->decode({&id, 1});
      }
    }
    tokenizer->encode_pair("a", "b");
  } catch (const heed::Error& error) {
    if (error.code() == heed::ErrorCode::internal) std::abort();
  }
  return 0;
}
