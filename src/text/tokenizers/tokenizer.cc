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

// File names of a folder's SentencePiece model.
constexpr const char* kSpieceFiles[] = {"spiece.model", "sentencepiece.bpe.model",
                                        "tokenizer.model", "spm.model"};

// Null when the folder has no supported tokenizer. The order is that of Hugging Face's tools:
// tokenizer.json, then the files of tokenizer_class, then the older files.
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

// From one file; the other files of its folder are read as for the folder.
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
                "pass a model folder, or one of its tokenizer files");
  }
  TokenizerPtr tokenizer =
      std::filesystem::is_directory(path) ? load_folder(TokenizerFolder(path)) : load_file(path);
  if (tokenizer) return tokenizer;
  throw Error(ErrorCode::unsupported, path + ": no supported tokenizer",
              "supported: tokenizer.json, spiece.model, tokenizer.model, sentencepiece.bpe.model, "
              "source.spm + target.spm + vocab.json, vocab.txt, vocab.json + merges.txt");
}

TokenizerPtr make_tokenizer(const std::string& type) {
  if (type == "byte") return make_byte_tokenizer();
  if (type == "char") return make_char_tokenizer({.characters = ascii_characters()});
  throw Error(ErrorCode::invalid_argument,
              "the tokenizer type must be byte or char, got '" + type + "'",
              "other types are loaded from a model folder");
}

}  // namespace heed
