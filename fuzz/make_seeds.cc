// make_seeds FOLDER: writes small well-formed files for the fuzzers to start from, to FOLDER/NAME/.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "fuzz_spiece.h"
#include "heed/error.h"
#include "model/hugging_face.h"
#include "model/safetensors.h"
#include "model/torch_testing.h"

namespace heed {
namespace {

void write_file(const std::filesystem::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary) << content;
}

// Every architecture with all its fields, and Heed's own config.
void make_config_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_safetensors(folder / "none", {});
  const TensorFile none = TensorFile::open(folder / "none");
  std::filesystem::remove(folder / "none");
  for (const std::string& type : hf_model_types()) {
    const std::string config = R"({"model_type": ")" + type + "\"}";
    write_file(folder / type, hf_write_config(hf_read_config(config, type, none)));
  }
  write_file(folder / "model_config", to_json(ModelConfig{}));
}

void make_safetensors_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::vector<float> floats = {1, 2, 3, 4, 5, 6};
  const auto bytes = std::as_bytes(std::span(floats));
  const TensorView weight{"encoder.weight", DType::f32, {2, 3}, bytes};
  const TensorView half{"half", DType::bf16, {4}, bytes.first(8)};
  const TensorView empty{"empty", DType::i64, {0, 3}, {}};
  const TensorView scalar{"scalar", DType::f64, {}, bytes.first(8)};
  write_safetensors(folder / "none", {});
  write_safetensors(folder / "one", std::vector{weight});
  write_safetensors(folder / "four", std::vector{weight, half, empty, scalar}, {{"step", "1"}});
}

void make_torch_file_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string floats = pickled::storage("FloatStorage", "0", 6);
  const std::string halves = pickled::storage("HalfStorage", "1", 2);
  const std::string pickle = pickled::program(pickled::state_dict(
      {pickled::text("plain"), pickled::tensor(floats, 0, {2, 3}, {3, 1}),
       pickled::text("transposed"), pickled::parameter(pickled::tensor(floats, 0, {3, 2}, {1, 3})),
       pickled::text("half"), pickled::tensor(halves, 1, {1}, {1})}));
  const std::vector<std::string> storages = {std::string(24, 'x'), "four"};
  write_file(folder / "pickle", pickle);
  // Every other instruction: numbers, the memo, lists, dictionaries.
  using namespace std::string_literals;
  write_file(folder / "values",
             pickled::program("](K\1q\0M\1\1r\1\0\0\0J\1\1\1\1\x8a\3abcNh\0j\1\0\0\0\x88\x89"
                              "G\1\2\3\4\5\6\7\x10}K\1K\2sK\3K\4\x85K\5\x86N\x87Qe)a"s));
  write_file(folder / "zip", make_torch_file(pickle, storages));
  write_file(folder / "zip64", make_torch_file(pickle, storages, true));
}

void make_spiece_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const int model_type : {1, 2, 3, 4}) {
    for (const bool rules : {false, true}) {
      const std::string name = std::to_string(model_type) + (rules ? "-rules" : "");
      write_file(folder / name, fuzz::spiece_model(model_type, rules));
    }
  }
}

void make_spiece_text_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "plain", "a bc  \xc3\xa9 b");
  write_file(folder / "special", "<s>b</s> <extra_id_0> \xe2\x96\x81 <mask><user>");
  write_file(folder / "invalid", "\xe2\x96 \xff a \xed\xa0\x80");
}

// One file for each kind of step, so that the fuzzer knows all names.
void make_tokenizer_json_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "bpe", R"({"added_tokens": [{"id": 5, "content": "<s>", "lstrip": true,
"rstrip": true, "single_word": true, "normalized": true, "special": true}],
"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Prepend", "prepend": "_"},
{"type": "Replace", "pattern": {"Regex": " +"}, "content": "_"}, {"type": "Nmt"}]},
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex":
"\\p{L}{1,3}+|[^\\s[.,]]+"}, "behavior": "MergedWithNext", "invert": true}, {"type": "Digits"}, {"type":
"ByteLevel", "add_prefix_space": true, "use_regex": true}]}, "post_processor": {"type": "RobertaProcessing",
"sep": ["b", 1], "cls": ["a", 0]}, "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE",
"unk_token": "a", "fuse_unk": true, "ignore_merges": true, "byte_fallback": false,
"vocab": {"a": 0, "b": 1, "ab": 2, "\u0120": 3}, "merges": ["a b"]}})");
  write_file(folder / "wordpiece",
             R"({"normalizer": {"type": "BertNormalizer"}, "pre_tokenizer": {"type":
"BertPreTokenizer"}, "post_processor": {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "x",
"type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}], "pair": [{"Sequence": {"id": "B", "type_id": 1}}],
"special_tokens": {"x": {"id": "x", "ids": [0], "tokens": ["x"]}}}, "decoder": {"type": "WordPiece",
"prefix": "##", "cleanup": true}, "model": {"type": "WordPiece", "unk_token": "x",
"continuing_subword_prefix": "##", "max_input_chars_per_word": 9, "vocab": {"x": 0, "h": 1, "##e": 2}}})");
  write_file(folder / "unigram", R"({"normalizer": {"type": "Precompiled", "precompiled_charsmap":
"CAAAAAAEAAAAAAAAeAA="}, "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "prepend_scheme": "first",
"split": true}, "decoder": {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"},
{"type": "Strip", "content": " ", "start": 1, "stop": 1}, {"type": "Metaspace", "replacement": "_"}]},
"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": [["u", 0], ["_", -1], ["l", -2]]}})");
}

void make_tokenizer_files_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "vocab", "0[UNK]\n[CLS]\n[SEP]\nhello\n##x\n,\n");
  using namespace std::string_literals;
  write_file(folder / "bpe",
             "1{\"h\": 0, \"e\": 1, \"he\": 2, \"<s>\": 3, \"</s>\": 4}\0#version: 0.2\nh e\n"s);
}

void make_tokenizer_text_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "plain",
             "the The it's 123 don't,  x\r\n\r\n aaaa [X] Ab \xc3\xa9"
             "e\xcc\x81");
  write_file(folder / "invalid", "\xe2\x96 \xff a \xed\xa0\x80 \xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd");
}

void make_request_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "json",
             R"({"text": "a\u00e9", "kind": "b", "flag": true, "integer": 5, "number": 1e3,)"
             R"( "maybe": null, "texts": ["x", "y"], "prompts": [[1, 2], "z"], "ids": [3],)"
             R"( "only": 0, "ignored": {"a": [[]]}, "inside": {"inner": false}})");
  write_file(folder / "form", "text=a+b%20c&flag=true&integer=-5&number=1.5&texts=x&texts=%C3%A9");
}

}  // namespace
}  // namespace heed

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_seeds FOLDER\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    heed::make_config_seeds(folder / "config");
    heed::make_request_seeds(folder / "request");
    heed::make_safetensors_seeds(folder / "safetensors");
    heed::make_spiece_seeds(folder / "spiece");
    heed::make_spiece_text_seeds(folder / "spiece_text");
    heed::make_tokenizer_files_seeds(folder / "tokenizer_files");
    heed::make_tokenizer_json_seeds(folder / "tokenizer_json");
    heed::make_tokenizer_text_seeds(folder / "tokenizer_text");
    heed::make_torch_file_seeds(folder / "torch_file");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
