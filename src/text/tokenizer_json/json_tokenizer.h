// Hugging Face's tokenizer.json, and the older files that say the same: BERT's vocab.txt, GPT-2's
// vocab.json and merges.txt.
//
// A text goes through these steps, each a file of this folder: added tokens are cut out
// (added_tokens.h), what is left is rewritten (normalizers.h), cut into words (pre_tokenizers.h)
// and those into ids (subword_model.h); a template puts special tokens around them
// (post_processor.h). decode() turns pieces back into text (decoders.h).
//
// "truncation" and "padding" in the file are ignored: lengths are the caller's business.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "heed/tokenizer.h"

namespace heed {

class TokenizerFolder;

struct NamedFile {
  std::string name, content;
};

struct JsonTokenizerOptions {
  std::string place = "tokenizer.json";  // begins the messages about what is wrong
  std::vector<NamedFile> files{};        // what save() writes
  // What bos_token, eos_token and so on are, if the folder says; otherwise well-known names count.
  const TokenizerFolder* folder = nullptr;
};

// `document` is a tokenizer.json. Throws corrupt_file or unsupported.
TokenizerPtr make_json_tokenizer(const nlohmann::json& document,
                                 const JsonTokenizerOptions& options);

// From a file with any name; the folder is the one it lies in.
TokenizerPtr load_json_tokenizer(const std::string& path, const TokenizerFolder& folder);
// From BERT's list of pieces, one a line, and tokenizer_config.json beside it.
TokenizerPtr load_bert_vocabulary(const std::string& path, const TokenizerFolder& folder);
// From vocab.json and merges.txt of the folder: GPT-2, RoBERTa, Qwen 2.
TokenizerPtr load_bpe_files(const TokenizerFolder& folder);

}  // namespace heed
