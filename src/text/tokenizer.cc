#include "heed/tokenizer.h"

#include <filesystem>

#include "heed/error.h"

namespace heed {

TokenizerPtr load_tokenizer(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorCode::not_found, "no tokenizer at " + path,
                "name a model folder, or one of its tokenizer files");
  }
  throw Error(ErrorCode::unsupported, path + ": no tokenizer of a known kind");
}

}  // namespace heed
