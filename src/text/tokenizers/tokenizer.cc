#include "heed/tokenizer.h"

#include <filesystem>

#include "heed/error.h"
#include "text/tokenizer_json/json_tokenizer.h"
#include "text/tokenizers/byte_tokenizer.h"
#include "text/tokenizers/char_tokenizer.h"
#include "text/tokenizers/marian_tokenizer.h"
#include "text/tokenizers/spiece_tokenizer.h"
#include "text/tokenizers/tokenizer_folder.h"

namespace heed {
namespace {

// The names that models give to the one SentencePiece model they have.
constexpr const char* kSpieceFiles[] = {"spiece.model", "sentencepiece.bpe.model",
                                        "tokenizer.model", "spm.model"};

// Nothing when the folder has no tokenizer that is known here. The order is that of Hugging Face's
// tools: tokenizer.json has it all; then what tokenizer_class decides; then the older files.
TokenizerPtr load_folder(const TokenizerFolder& folder) {
  if (is_char_tokenizer(folder)) return load_char_tokenizer(folder);
  if (folder.has("tokenizer.json")) {
    return load_json_tokenizer(folder.path("tokenizer.json"), folder);
  }
  if (folder.tokenizer_class() == "ByT5Tokenizer") return load_byte_tokenizer(folder);
  if (is_marian_tokenizer(folder)) return load_marian_tokenizer(folder);
  for (const char* name : kSpieceFiles) {
    if (folder.has(name)) return load_spiece_tokenizer(folder, name);
  }
  if (folder.has("vocab.txt")) return load_bert_vocabulary(folder.path("vocab.txt"), folder);
  if (folder.has("vocab.json") && folder.has("merges.txt")) return load_bpe_files(folder);
  return nullptr;
}

// From one file; what stands beside it counts as in its folder.
TokenizerPtr load_file(const std::filesystem::path& path) {
  const TokenizerFolder folder(path.has_parent_path() ? path.parent_path().string() : ".");
  const std::string name = path.filename();
  if (name == "tokenizer.json" && is_char_tokenizer(folder)) return load_char_tokenizer(folder);
  if (name == "tokenizer_config.json") return load_folder(folder);
  if (name.ends_with(".model") || name.ends_with(".spm")) {
    return load_spiece_tokenizer(folder, name);
  }
  if (name == "vocab.json" || name == "merges.txt") return load_bpe_files(folder);
  if (name.ends_with(".json")) return load_json_tokenizer(path, folder);
  if (name.ends_with("vocab.txt")) return load_bert_vocabulary(path, folder);
  return nullptr;
}

}  // namespace

TokenizerPtr load_tokenizer(const std::string& path) {
  if (!std::filesystem::exists(path)) {
    throw Error(ErrorCode::not_found, "no tokenizer at " + path,
                "name a model folder, or one of its tokenizer files");
  }
  TokenizerPtr tokenizer =
      std::filesystem::is_directory(path) ? load_folder(TokenizerFolder(path)) : load_file(path);
  if (tokenizer) return tokenizer;
  throw Error(ErrorCode::unsupported, path + ": no tokenizer of a known kind",
              "known are tokenizer.json, spiece.model, tokenizer.model, sentencepiece.bpe.model, "
              "source.spm + target.spm + vocab.json, vocab.txt, vocab.json + merges.txt");
}

TokenizerPtr make_tokenizer(const std::string& type) {
  if (type == "byte") return make_byte_tokenizer();
  if (type == "char") return make_char_tokenizer({.characters = ascii_characters()});
  throw Error(ErrorCode::invalid_argument, "no tokenizer '" + type + "' without a file",
              "byte and char need none; others are loaded from a model folder");
}

}  // namespace heed
