// make_seeds FOLDER: writes small well-formed files for the fuzzers to start from, to FOLDER/NAME/.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "data/batches/token_store.h"
#include "data/options.h"
#include "fuzz_model.h"
#include "fuzz_spiece.h"
#include "heed/error.h"
#include "model/files/safetensors.h"
#include "model/files/torch_testing.h"
#include "model/hugging_face/hugging_face.h"
#include "model/network.h"
#include "model/quantize.h"
#include "train/run/checkpoint.h"

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

// One file per step type, so that the fuzzer has all names.
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
  write_file(folder / "char",
             R"(2{"added_tokens": [0, 1, 2, 3], "normalizer": {"type": "Lowercase"},
"model": {"type": "WordLevel", "vocab": {"<pad>": 0, "</s>": 1, "<unk>": 2, "<x>": 3, "h": 4}}})");
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

// The first three bytes select format, objective and columns, as in corpus_fuzz.cc.
void make_corpus_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  using namespace std::string_literals;
  const auto seed = [&](const char* name, CorpusFormat format, Objective objective, int columns,
                        const std::string& content) {
    std::string choice{static_cast<char>(format), static_cast<char>(objective)};
    write_file(folder / name, choice + static_cast<char>(columns) + content);
  };
  const std::string pairs = "a dog\tein Hund\tx\n\n\xff\tb\n";
  seed("text", CorpusFormat::text, Objective::causal_lm, 0, "One. Two!\n\nThree\r\n");
  seed("paragraphs", CorpusFormat::text, Objective::masked_lm, 1 << 6, "One.\nTwo?\n\nThree\n");
  seed("file", CorpusFormat::text, Objective::causal_lm, 2 << 6, "One\n\nTwo");
  seed("parallel", CorpusFormat::parallel, Objective::translation, 0, "a\nb\n\0c\nd\n"s);
  seed("tsv", CorpusFormat::tsv, Objective::translation, 0, pairs);
  // "a", a tab and "b" compressed by `gzip -n` and `zstd`.
  seed("gzip", CorpusFormat::tsv, Objective::translation, 0,
       "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x4b\xe4\x4c\xe2\x02\0\xce\x94\x11\x1a\x04\0\0\0"s);
  seed("zstd", CorpusFormat::tsv, Objective::translation, 0,
       "\x28\xb5\x2f\xfd\0\x68\x21\0\0\x61\x09\x62\x0a"s);
  seed("csv", CorpusFormat::csv, Objective::classification, 0,
       "\"a, \"\"b\"\"\",pos\r\n\"two\nlines\",neg\n");
  seed("csv-header", CorpusFormat::csv, Objective::classification, 5 | 5 << 3, "id,text\n1,a\n");
  seed("jsonl", CorpusFormat::jsonl, Objective::classification, 5,
       "{\"text\": \"a\", \"label\": 1.5}\n{\"a\": {\"b\": \"\\u00e9\"}}\n[]\n");
  seed("jsonl-tags", CorpusFormat::jsonl, Objective::tagging, 0,
       R"({"text": ["a", "dog"], "label": ["DT", "NN"]})");
  seed("labelled", CorpusFormat::labelled, Objective::classification, 0, "pos good .\nneg bad\n");
  seed("numbers", CorpusFormat::labelled, Objective::regression, 0, "1.5 a\nnan b\n");
  seed("conll", CorpusFormat::conll, Objective::tagging, 0,
       "-DOCSTART- O\n\nEU B-ORG\nrejects O\n\n");
  seed("conllu", CorpusFormat::conll, Objective::tagging, 0,
       "# text = It's\n1-2\tIt's\t_\t_\t_\t_\t_\t_\t_\t_\n1\tIt\tit\tPRON\t_\t_\t0\t_\t_\t_\n");
  seed("brackets", CorpusFormat::brackets, Objective::parsing, 0,
       "( (S (NP-SBJ-1 (NNP John))\n  (VP (VBZ has) (NP (-NONE- *T*)))) )\n(S (X y))");
}

void make_recipe_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  using namespace std::string_literals;
  write_file(folder / "recipe", R"([model]
preset = "transformer-tiny"
heads = 8
dropout = 0.1
[data]
folder = "corpus"
train = ["a.tsv"]
batch_tokens = 8_192
[tokenizer]
type = "bpe"
special_tokens = ["<x>"]
[objective]
kind = "translation"
label_smoothing = 1e-1
[optimizer]
learning_rate = 5e-3
[schedule]
kind = "inverse_sqrt"
[train]
steps = 100
average = "last"
[validate]
share = 0.1
metric = "bleu"
)"s + '\0' + "train.steps=9");
  write_file(folder / "corpora", R"(model.preset = "gpt2"
train.epochs = 1.5
[[data.corpora]]
train = ["a", 'b']
format = "parallel"
weight = 2
[[data.corpora]]
train = ["""c"""]
)");
  write_file(folder / "sweep", R"(recipe = "recipe.toml"
columns = ["loss"]
[set]
train.steps = 2
[[rows]]
name = "base"
[[lists]]
model.heads = [1, 2]
model.head_dim = [64, 32]
[[grid]]
model.dropout = [0.1, 0.3]
train.seed = [1, 2]
)");
}

void make_generation_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string generation =
      R"({"num_beams": 4, "length_penalty": 0.6, "early_stopping": "never", "max_length": 9,
"eos_token_id": [0, 2], "forced_bos_token_id": 5, "forced_eos_token_id": null, "no_repeat_ngram_size": 3,
"repetition_penalty": 1.2, "bad_words_ids": [[7], [8, 9]], "suppress_tokens": [1], "do_sample": true,
"temperature": 0.5, "top_k": 40, "top_p": 0.9, "min_p": 0.1, "max_new_tokens": 5, "min_new_tokens": 1})";
  write_file(folder / "both",
             R"({"eos_token_id": 1, "min_length": 2})" + std::string(1, '\0') + generation);
  write_file(folder / "config", generation);
}

void make_run_log_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "log", R"(0{"kind":"start","step":0,"steps":9}
{"kind":"train","step":1,"loss":2.5,"tokens":10}
{"kind":"train","step":1,"loss":2.4}
{"kind":"validate","step":1,"samples":["a"]}
{"kind":"end","step":9}
{"kind":"tr)");
  write_file(folder / "table",
             R"(1{"columns": ["loss"], "rows": [{"name": "base", "values": [1.5, null]}]})");
  write_file(folder / "state",
             "2" + to_json(TrainingState{.step = 5, .metric = 1.5, .settings = "{}"}));
  write_file(folder / "resumed", R"(3{"kind":"train","step":1,"loss":2.5,"text":"x"}
{"kind":"train","step":1,"loss":2.4,"samples":["a",1]}
{"kind":"end","step":9})");
  // A step, and a summary of one value: a tag and a number.
  write_file(folder / "events",
             "4\x11\x10\x05\x2a\x0d\x0a\x0b\x0a\x04"
             "loss\x15\x01\x02\x03\x04");
}

void make_tree_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string tree = "(S (NP (DT a) (NN dog)) (VP (VB runs)) (. .))";
  write_file(folder / "tree", tree);
  write_file(folder / "traces", "( (S (NP-SBJ-1 (-NONE- *)) (VP|X (VB go))) )");
  write_file(folder / "linear", "(S (NP XX XX )NP (VP XX )VP )S");
  write_file(folder / "evalb", tree + "\n\n (S (`` ``))\n" + std::string(1, '\0') +
                                   "DEBUG 0\nMAX_ERROR 10\nCUTOFF_LEN 40\nLABELED 1\n"
                                   "DELETE_LABEL .\nDELETE_LABEL_FOR_LENGTH -NONE-\n"
                                   "QUOTE_LABEL ``\nEQ_LABEL ADVP PRT\nEQ_WORD a b\n");
}

void make_http_seeds(const std::filesystem::path& folder) {
  using namespace std::string_literals;
  std::filesystem::create_directories(folder);
  write_file(folder / "get", "GET /a%20b?q=1&r=%41 HTTP/1.1\r\nHost: x\r\nAccept: */*\r\n\r\n");
  write_file(folder / "post",
             "POST /translate HTTP/1.1\r\nContent-Length: 5\r\nConnection: keep-alive\r\n\r\nq=abc"
             "GET / HTTP/1.0\r\n\r\n");
  write_file(folder / "chunked",
             "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  write_file(
      folder / "multipart",
      "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 79\r\n"
      "Expect: 100-continue\r\n\r\n--b\r\nContent-Disposition: form-data; name=\"q\"\r\n\r\n"
      "a dog & a cat\r\n--b--\r\n");
  write_file(folder / "gzip",
             "POST / HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 24\r\n\r\n"
             "\x1f\x8b\x08\0\0\0\0\0\x02\x03\x4b\xe4\x4c\xe2\x02\0\xce\x94\x11\x1a\x04\0\0\0"s);
  write_file(folder / "other", "OPTIONS * HTTP/1.1\r\nRange: bytes=0-4\r\nX: \t a\r\n b\r\n\r\n");
}

void make_shards_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "index", R"({"metadata": {"total_size": 32}, "weight_map":
{"a": "1.safetensors", "b": "2.safetensors", "both": "2.safetensors"}})");
  write_file(folder / "missing", R"({"weight_map": {"a": "3.safetensors", "b": "../x"}})");
}

// The content of a file or a checkpoint as one text.
std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The smallest models, f32 and quantized: config.json, NUL, model.safetensors.
void make_weights_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  ThreadPool pool(1);
  const NameFilter none("");
  const auto save = [&](const std::string& name, const Network& network, DType dtype) {
    const std::filesystem::path model = folder / (name + ".model");
    network.save(model, {.dtype = dtype});
    write_file(folder / name,
               content_of(model / "config.json") + '\0' + content_of(model / "model.safetensors"));
    std::filesystem::remove_all(model);
  };
  ModelConfig heeds_own = fuzz::smallest_config(Family::decoder_only);  // only Heed has this
  heeds_own.norm = NormKind::rms_norm, heeds_own.norm_place = NormPlace::pre;
  save("heed", Network(heeds_own), DType::f32);
  for (const auto& [family, name] : kEnumNames<Family>) {
    const Network network(fuzz::smallest_config(family));
    save(std::string(name), network, DType::f32);
    save(std::string(name) + "-f16", network, DType::f16);
    for (const WeightType type : {WeightType::int8, WeightType::int4}) {
      save(std::string(name) + "-" + weight_type_name(type),
           quantize(network, {type, none, pool}).network, DType::f32);
    }
  }
}

void make_checkpoint_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  Network network(fuzz::smallest_config(Family::decoder_only));
  network.add_gradients();
  for (const double decay : {0.0, 0.5}) {
    Optimizer optimizer(network.parameters(), {.ema_decay = decay});
    const std::string checkpoints = folder / "checkpoints";
    Checkpoints writer(checkpoints);
    writer.begin(network, 1, {});
    writer.commit(network, optimizer, {.step = 1, .metric = 1.5, .settings = "{}"});
    write_file(folder / (decay > 0 ? "averaged" : "plain"),
               content_of(checkpoints + "/step-1/state.json") + '\0' +
                   content_of(checkpoints + "/step-1/training.safetensors"));
    std::filesystem::remove_all(checkpoints);
  }
}

void make_token_store_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::vector<int32_t> ids{1, 2, 3, 4, 5};
  const std::span all(ids);
  TokenStoreWriter one(folder / "one", 7);
  one.add(all, all.first(1));
  one.add({}, {});
  one.add(all.first(2), all.last(2));
  one.finish(R"({"labels": []})");
  TokenStoreWriter two(folder / "two", 7);  // blocks
  for (int64_t i = 0; i <= TokenStore::kBlockExamples; ++i) two.add(all.first(i % 2 ? 0 : 1), {});
  two.finish("");
  TokenStoreWriter(folder / "none", 7).finish("");
}

void make_tokenizer_folder_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  using namespace std::string_literals;
  for (const char* family :
       {"T5", "Llama", "Gemma", "XLMRoberta", "Pegasus", "GPT2", "Qwen2", "Bert", "ByT5"}) {
    for (const char kind : {'\0', '\2', '\3', '\6'}) {
      const std::string name = std::string(family) + "-" + std::to_string(kind);
      write_file(folder / name,
                 kind + (R"({"tokenizer_class": ")"s + family + R"(Tokenizer", "extra_ids": 2,
"offset": 5, "legacy": false, "add_prefix_space": true, "add_bos_token": true, "add_eos_token": true,
"do_lower_case": false, "strip_accents": true, "unk_token": "<unk>", "eos_token": {"content": "</s>"},
"added_tokens_decoder": {"12": {"content": "<x>", "lstrip": true, "rstrip": true, "special": true}}})") +
                     "\0{\"pad_token\": \"<pad>\", \"additional_special_tokens\": [\"<y>\"]}"
                     "\0{\"<z>\": 13}\0{\"model_type\": \"t5\"}"s);
    }
  }
  write_file(folder / "json",
             "\4{\"cls_token\": \"x\", \"mask_token\": {\"content\": \"[MASK]\"}}");
  write_file(folder / "nameless",
             "\0{\"tokenizer_class\": \"XLMRobertaTokenizer\", \"unk_token\": \"\", "
             "\"bos_token\": \"\", \"eos_token\": \"\", \"pad_token\": \"\"}"s);
  write_file(folder / "marian",
             "\5{\"separate_vocabs\": true, \"target_vocab_file\": "
             "\"vocab.json\", \"eos_token\": \"</s>\"}");
}

// The first two bytes select the type and the size, as in tokenizer_training_fuzz.cc.
void make_tokenizer_training_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string text =
      "the cat sat on the mat\nthe dog, the cats and the mats\n\n caf\xc3\xa9 \xff 12\n";
  for (const char kind : {'0', '1', '2', 'b', 'u'}) {
    write_file(folder / std::string{kind}, std::string{kind, 20} + text);
  }
  write_file(folder / "large", "0\x7f" + text);
  write_file(folder / "small", "1\x01" + text);
}

void make_marian_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string vocabulary = R"({"</s>": 0, "<unk>": 1, "b": 2, ">>fra<<": 3, "<pad>": 4})";
  for (const bool separate : {false, true}) {
    write_file(folder / (separate ? "separate" : "shared"),
               vocabulary + '\0' + (separate ? vocabulary : "") + '\0' +
                   (separate ? R"({"separate_vocabs": true, "source_lang": "en"})" : "") + '\0' +
                   fuzz::spiece_model(1, /*rules=*/true));
  }
}

void make_sentence_folder_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  using namespace std::string_literals;
  write_file(folder / "all", R"([{"idx": 0, "name": "0", "path": "", "type":
"sentence_transformers.models.Transformer"}, {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
{"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}])"s +
                                 '\0' +
                                 R"({"word_embedding_dimension": 4, "pooling_mode_cls_token": false,
"pooling_mode_mean_tokens": true, "pooling_mode_lasttoken": false})" +
                                 '\0' + R"({"max_seq_length": 256, "do_lower_case": false})");
}

void make_forward_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  using namespace std::string_literals;
  write_file(folder / "both",
             "\0{\"sources\": [[5, 6], [1]], \"decoder_inputs\": [[0, 7], [0]], \"labels\": "
             "[[7, 1], [-100]]}"s);
  write_file(folder / "decoder", "\1{\"sequences\": [[5, 6, 7], [1, 2]]}");
  write_file(folder / "encoder",
             "\2{\"sequences\": [[5, 6], [7]], \"token_type_ids\": [[0, 1], [1]], \"labels\": [[5, "
             "-100], [1]], \"global_tokens\": [[0], []]}");
  write_file(folder / "regression", "\3{\"sequences\": [[5], [6]], \"labels\": [0.5, -1]}");
  write_file(folder / "tags", "\4{\"sequences\": [[5, 6]], \"labels\": [[0, 2]]}");
}

// A row of an earlier run of the sweep.
void make_sweep_folder_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string settings = R"({"train.steps": "1", "model.preset": "nanogpt-cpu"})";
  write_file(folder / "finished", '\0' + std::string(R"({"steps": 1, "seconds": 0.5, "tokens": 9,
"loss": 2.5, "parameters": 100, "validation": {"loss": 2.5}, "peak_rss_bytes": 1000})"));
  write_file(folder / "begun", settings);
}

void make_markup_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string nul(1, '\0');
  write_file(folder / "html",
             "<p id='a > b'>Hi <b>{name}</b>, see <a href=\"x\">https://a.org</a> "
             "<img src=y> &amp; <code>z</code>.<br>\nBye &#233;&nbsp;!</p>" +
                 nul + "Hallo <ph0>, siehe <ph1> <ph1>. Tschüs!");
  write_file(folder / "broken",
             "<b>a<i>b</b>c</i> <x <y z=\"> <!-- c <script> </p" + nul + "eins zwei drei");
  write_file(folder / "markdown",
             "# A *b* **c**\n\n- [x](https://y.org \"t\") `z`\n> q\n\n"
             "| a | b |\n|---|---|\n| c | d |\n\n```\ne\n```\n<div>f</div>\n" +
                 nul + "A b c");
  write_file(folder / "placeholders",
             "%s of %1$d, ${x} {{y}} @a #b a@b.org 😀👍🏽 <ph0>" + nul + "%s von <ph0>");
}

void make_metric_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_file(folder / "lines",
             "The cat's $3.50 &quot;x&quot;.\tA cat\tThe cat, 3\n"
             "\xe7\x8c\xab\xe3\x80\x82 \xc3\xa9\t\xe7\x8c\xab \xff\n");
  write_file(folder / "tags", "B-PER\nI-PER\nO\nS-LOC\nE-X\nU-Y\nL-Y\n\n");
}

void make_route_seeds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto seed = [&](const char* name, const std::string& text) {
    write_file(folder / name, text);
  };
  seed("translate", "/translate\nq=a&source=en&target=de&format=html&alternatives=2");
  seed("translate-json", R"(/translate
{"q": ["a", "b"], "source": "auto", "target": "de", "format": "text"})");
  seed("completions", R"(/v1/completions
{"model": "writer", "prompt": ["a", [1, 2]], "max_tokens": 2, "temperature": 0.5, "top_p": 0.9, "n": 2,
"stop": ["x"], "logprobs": 2, "echo": true, "seed": 1, "stream": true})");
  seed("embeddings", R"(/v1/embeddings
{"model": "reader", "input": ["a", "b"], "encoding_format": "base64"})");
  for (const char* task : {"fill", "classify", "tag", "embed", "score", "parse", "attend",
                           "predict", "generate", "tokenize"}) {
    seed(task, std::string("/v1/heed/") + task + R"(
{"input": "a [MASK] b", "model": "reader", "text": "a", "texts": ["a"], "top": 2})");
  }
  for (const char* path :
       {"healthz", "readyz", "metrics", "openapi.json", "v1/models", "v1/models/writer",
        "v1/heed/models/reader", "languages", "v1/heed/runs"}) {
    std::string name = path;
    std::ranges::replace(name, '/', '-');
    seed(name.c_str(), std::string("/") + path);
  }
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
    heed::make_checkpoint_seeds(folder / "checkpoint");
    heed::make_config_seeds(folder / "config");
    heed::make_corpus_seeds(folder / "corpus");
    heed::make_forward_seeds(folder / "forward");
    heed::make_generation_seeds(folder / "generation");
    heed::make_http_seeds(folder / "http");
    heed::make_marian_seeds(folder / "marian");
    heed::make_markup_seeds(folder / "markup");
    heed::make_metric_seeds(folder / "metric");
    heed::make_recipe_seeds(folder / "recipe");
    heed::make_request_seeds(folder / "request");
    heed::make_route_seeds(folder / "route");
    heed::make_run_log_seeds(folder / "run_log");
    heed::make_safetensors_seeds(folder / "safetensors");
    heed::make_sentence_folder_seeds(folder / "sentence_folder");
    heed::make_shards_seeds(folder / "shards");
    heed::make_spiece_seeds(folder / "spiece");
    heed::make_spiece_text_seeds(folder / "spiece_text");
    heed::make_sweep_folder_seeds(folder / "sweep_folder");
    heed::make_token_store_seeds(folder / "token_store");
    heed::make_tokenizer_files_seeds(folder / "tokenizer_files");
    heed::make_tokenizer_folder_seeds(folder / "tokenizer_folder");
    heed::make_tokenizer_json_seeds(folder / "tokenizer_json");
    heed::make_tokenizer_text_seeds(folder / "tokenizer_text");
    heed::make_tokenizer_training_seeds(folder / "tokenizer_training");
    heed::make_torch_file_seeds(folder / "torch_file");
    heed::make_tree_seeds(folder / "tree");
    heed::make_weights_seeds(folder / "weights");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "error: %s\n", error.what());
    return 1;
  }
  return 0;
}
