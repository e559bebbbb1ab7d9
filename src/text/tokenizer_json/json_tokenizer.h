// Hugging Face's tokenizer.json, and the equivalent older files: BERT's vocab.txt, GPT-2's vocab.json
// and merges.txt.
//
// encode() runs these steps, each a file of this folder: split at added tokens (added_tokens.h),
// normalizer (normalizers.h), pre-tokenizer (pre_tokenizers.h), subword model (subword_model.h),
// post-processor with special tokens (post_processor.h). decode() runs the decoder (decoders.h).
//
// "truncation" and "padding" in the file are ignored: callers truncate, and nothing is padded.
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
  std::string place = "tokenizer.json";  // begins error messages
  std::vector<NamedFile> files{};        // what save() writes
  // Names bos_token, eos_token and so on; without it, well-known names are used.
  const TokenizerFolder* folder = nullptr;
};

// `document` is a tokenizer.json. Throws corrupt_file or unsupported.
TokenizerPtr make_json_tokenizer(const nlohmann::json& document,
                                 const JsonTokenizerOptions& options);

// From a file of any name; `folder` contains it.
TokenizerPtr load_json_tokenizer(const std::string& path, const TokenizerFolder& folder);
// From BERT's vocab.txt, one token per line, and tokenizer_config.json in the same folder.
TokenizerPtr load_bert_vocabulary(const std::string& path, const TokenizerFolder& folder);
// From vocab.json and merges.txt of the folder: GPT-2, RoBERTa, Qwen 2.
TokenizerPtr load_bpe_files(const TokenizerFolder& folder);

}  // namespace heed
