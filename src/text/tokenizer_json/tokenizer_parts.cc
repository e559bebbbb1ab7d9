#include "text/tokenizer_json/tokenizer_parts.h"

#include <filesystem>

#include "base/files/atomic_file.h"
#include "heed/error.h"

namespace heed {

void append_second(Encoding& first, const Encoding& second, int32_t type) {
  first.ids.insert(first.ids.end(), second.ids.begin(), second.ids.end());
  first.offsets.insert(first.offsets.end(), second.offsets.begin(), second.offsets.end());
  first.types.insert(first.types.end(), second.ids.size(), type);
  first.is_special.insert(first.is_special.end(), second.is_special.begin(),
                          second.is_special.end());
}

void check_id(int32_t id, int64_t vocabulary_size) {
  if (id < 0 || id >= vocabulary_size) {
    throw Error(ErrorCode::invalid_argument,
                "a token id must be from 0 to " + std::to_string(vocabulary_size - 1) + ", got " +
                    std::to_string(id),
                "the tokenizer has " + std::to_string(vocabulary_size) + " tokens");
  }
}

void write_tokenizer_file(const std::string& folder, const std::string& name,
                          std::string_view content) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) {
    throw Error(ErrorCode::invalid_argument,
                folder + ": the folder cannot be created: " + failure.message());
  }
  AtomicFile file(std::filesystem::path(folder) / name);
  file.write(content);
  file.commit();
}

}  // namespace heed
