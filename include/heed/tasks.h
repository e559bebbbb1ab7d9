// Tasks: classification, tagging, embedding, mask filling, scoring, next tokens, parsing.
//
//   heed::Model model = heed::Model::load("models/sentiment");
//   heed::Classifier classifier(model);
//   std::string label = classifier.classify({{.text = "A fine film."}})[0].name;
//
// Every class takes many inputs: it sorts them by length, runs them in batches of `batch_tokens`
// and returns the results in the order of the inputs. A result has the same bits alone and in any
// batch, with any number of threads. An object may be used from several threads, whose calls take
// turns. `is_cancelled` is polled on the calling thread; true ends the call with the error
// cancelled.
//
// A text beyond the context length is truncated at its end, and its result says so. An input
// without tokens (an empty text and a template without special tokens) has a result with tokens ==
// 0.
//
// Errors: constructors throw unsupported for a model with another head or family. Calls throw
// not_found for text without a tokenizer, and invalid_argument for invalid inputs.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "heed/engine.h"
#include "heed/model.h"

namespace heed {

class TaskRunner;

// A text, a pair of texts, or raw ids with all special tokens.
struct TaskInput {
  std::string text{};
  std::optional<std::string> second{};
  std::vector<int32_t> ids{};         // if not empty: instead of the texts
  std::vector<int32_t> types{};       // of raw ids; empty: all 0
  std::vector<int32_t> second_ids{};  // raw ids of the target, if the task has one
};

struct TaskOptions {
  int threads = 0;              // 0: every CPU this process may use
  int64_t batch_tokens = 4096;  // of one forward pass; a longer text runs alone
  int64_t max_tokens = 0;       // longer texts are truncated; 0: context length
};

struct TaskResult {
  int64_t tokens = 0;      // with special tokens
  bool truncated = false;  // the input was longer
};

// ---- Mask filling: masked language models ------------------------------------------------------

struct FillOptions {
  int top = 5;                       // candidates for each mask
  std::optional<int32_t> mask_id{};  // not set: the tokenizer's
  int64_t first_number = 1;          // number of the first input in messages, such as its line
};

struct Candidate {
  int32_t id = -1;
  std::string piece{};  // as the vocabulary spells it: "##ing"; empty without a tokenizer
  std::string text{};   // as the text would: "ing"
  double probability = 0;
};

struct FilledMask {
  int64_t token = 0;                    // index into the ids
  TextSpan span{};                      // of Filled::source
  std::vector<Candidate> candidates{};  // best first
};

struct Filled : TaskResult {
  std::string source{};  // the text with the tokenizer's mask token
  std::string text{};    // the same with the best candidate for each mask
  std::vector<FilledMask> masks{};
};

class Filler {
 public:
  explicit Filler(Model model, const TaskOptions& options = {});
  // A mask is the tokenizer's mask token, [MASK] or <mask>. A text without one throws
  // invalid_argument, unless it is empty.
  std::vector<Filled> fill(const std::vector<TaskInput>& inputs, const FillOptions& options = {},
                           const std::function<bool()>& is_cancelled = {}) const;

 private:
  std::shared_ptr<TaskRunner> runner_;
};

// ---- Classification and regression -------------------------------------------------------------

struct Classified : TaskResult {
  int label = -1;                       // argmax; -1: regression, or no token
  std::string name{};                   // its name
  std::vector<double> probabilities{};  // of every label; empty for regression
  std::vector<float> logits{};          // for regression, the scores
};

class Classifier {
 public:
  explicit Classifier(Model model, const TaskOptions& options = {});
  std::vector<Classified> classify(const std::vector<TaskInput>& inputs,
                                   const std::function<bool()>& is_cancelled = {}) const;

  bool is_regression() const;
  const std::vector<std::string>& labels() const;  // their names

 private:
  std::shared_ptr<TaskRunner> runner_;
};

// ---- Tagging: token classifiers ----------------------------------------------------------------

// How spans are made from labels such as B-LOC and I-LOC.
enum class Aggregation {
  first,   // from words, each with the label of its first token: no span ends inside a word
  simple,  // from tokens
};

struct TagOptions {
  Aggregation aggregation = Aggregation::first;
  bool logits = false;  // return them too
};

struct TaggedWord {
  TextSpan span{};  // of the text; words are separated by white space
  int label = -1;   // -1: no token, or truncated
  std::string name{};
  double probability = 0;
};

struct TaggedSpan {
  TextSpan span{};
  std::string name{};      // without B- or I-
  double probability = 0;  // mean of its words or tokens
};

struct Tagged : TaskResult {
  std::vector<TaggedWord> words{};  // none for raw ids
  std::vector<TaggedSpan> spans{};  // of labels other than O
  std::vector<float> logits{};      // [tokens, labels], if requested
};

class Tagger {
 public:
  explicit Tagger(Model model, const TaskOptions& options = {});
  std::vector<Tagged> tag(const std::vector<TaskInput>& inputs, const TagOptions& options = {},
                          const std::function<bool()>& is_cancelled = {}) const;

  const std::vector<std::string>& labels() const;

 private:
  std::shared_ptr<TaskRunner> runner_;
};

// ---- Embeddings: every model -------------------------------------------------------------------

enum class EmbedPooling { mean, first, last };  // of the token vectors
template <>
inline constexpr std::array<EnumName<EmbedPooling>, 3> kEnumNames<EmbedPooling>{{
    {EmbedPooling::mean, "mean"},
    {EmbedPooling::first, "first"},
    {EmbedPooling::last, "last"},
}};
// A text beyond the context length is …
enum class LongText {
  truncate,  // truncated
  chunks,    // split; the vector is the chunks' mean, weighted by their tokens
};
template <>
inline constexpr std::array<EnumName<LongText>, 2> kEnumNames<LongText>{{
    {LongText::truncate, "truncate"},
    {LongText::chunks, "chunks"},
}};

struct EmbedOptions {
  EmbedPooling pooling = EmbedPooling::mean;
  bool normalize = true;  // to length 1
  LongText long_text = LongText::truncate;
  int64_t max_tokens = 0;  // as in TaskOptions; the smaller one counts
};
template <class Options, class Other, class Visit>
requires std::same_as<std::remove_const_t<Options>, EmbedOptions>
void describe(Options& o, Other& other, Visit&& visit) {
  visit(OptionInfo{.name = "pooling", .help = "of the token vectors"}, o.pooling, other.pooling);
  visit(OptionInfo{.name = "normalize", .help = "scale the vector to length 1"}, o.normalize,
        other.normalize);
  visit(OptionInfo{.name = "long_text", .help = "beyond the context length: truncate or split"},
        o.long_text, other.long_text);
  visit(OptionInfo{.name = "max_tokens", .help = "truncate to this length; 0: context length"},
        o.max_tokens, other.max_tokens);
}

// The options of a model folder's sentence-transformers files (modules.json, 1_Pooling/config.json,
// sentence_bert_config.json); the defaults without them. Throws corrupt_file or unsupported.
EmbedOptions embed_options(const std::string& folder);

struct Embedded : TaskResult {
  std::vector<float> vector{};  // zeros without a token
  int64_t chunks = 1;
};

class Embedder {
 public:
  explicit Embedder(Model model, const TaskOptions& options = {});
  std::vector<Embedded> embed(const std::vector<TaskInput>& inputs,
                              const EmbedOptions& options = {},
                              const std::function<bool()>& is_cancelled = {}) const;

  int64_t width() const;  // of the vectors

 private:
  std::shared_ptr<TaskRunner> runner_;
};

// Cosine similarity of two vectors of one width; 0 if one is all zeros.
double cosine_similarity(const std::vector<float>& a, const std::vector<float>& b);
// Writes vectors of one width as a tensor "embeddings" [inputs, width].
void write_embeddings(const std::string& path, const std::vector<std::vector<float>>& vectors);

// ---- Scoring: language models ------------------------------------------------------------------

// A text beyond the context length is scored in windows. Each begins `stride` tokens after the one
// before and scores the tokens that it did not, so that each has a context of at least
// window - stride tokens.
struct ScoreOptions {
  int64_t window = 0;  // 0: context length
  int64_t stride = 0;  // 0: half the window
  // Decoder-only models: put the begin token (BOS) before the text, so that its first token is
  // scored too.
  bool begin = true;
  // Score the end token (EOS) of the tokenizer. A model that was trained without end tokens gives
  // it a very low probability.
  bool end = true;
};

template <class Options, class Other, class Visit>
requires std::same_as<std::remove_const_t<Options>, ScoreOptions>
void describe(Options& o, Other& other, Visit&& visit) {
  visit(
      OptionInfo{.name = "window", .help = "tokens of a window of a long text; 0: context length"},
      o.window, other.window);
  visit(OptionInfo{.name = "stride", .help = "tokens between windows; 0: half a window"}, o.stride,
        other.stride);
  visit(OptionInfo{.name = "begin", .help = "put the begin token (BOS) before the text"}, o.begin,
        other.begin);
  visit(OptionInfo{.name = "end", .help = "score the end token (EOS) too"}, o.end, other.end);
}

struct Scored : TaskResult {
  double log_probability = 0;         // natural, the sum over the tokens
  std::vector<int32_t> ids{};         // the scored tokens
  std::vector<float> token_scores{};  // log p of each
  std::vector<TextSpan> offsets{};    // in the text (the target); empty for raw ids

  double perplexity() const;  // e^(-log_probability / tokens); 1 without tokens
};

class Scorer {
 public:
  // Models with a decoder and a language-model head.
  explicit Scorer(Model model, const TaskOptions& options = {});
  // Decoder-only: the text. Encoder-decoder: `second` given the text; only there truncated.
  std::vector<Scored> score(const std::vector<TaskInput>& inputs, const ScoreOptions& options = {},
                            const std::function<bool()>& is_cancelled = {}) const;

  bool has_source() const;  // inputs are pairs

 private:
  std::shared_ptr<TaskRunner> runner_;
};

// ---- Next tokens: models with a decoder and a language-model head ------------------------------
//
//   heed::Predicted p = heed::Predictor(model).predict({{.text = "Once upon a"}})[0];
//   p.next.back()[0].text;        // " time"

struct PredictOptions {
  int top = 5;             // candidates for each position
  bool everywhere = true;  // false: only after the last token
  double temperature = 1;  // of the candidates' probabilities; above 0
};

struct Predicted : TaskResult {
  std::vector<int32_t> ids{};  // input of the decoder, with its start token
  // log p of each id but the first, given those before it. Empty unless everywhere.
  std::vector<float> token_scores{};
  // The most probable tokens after ids[0], after ids[1], …; unless everywhere only the last entry.
  std::vector<std::vector<Candidate>> next{};
};

class Predictor {
 public:
  explicit Predictor(Model model, const TaskOptions& options = {});
  // Decoder-only models take the text (or ids); encoder-decoder models the source, and the
  // beginning of the target as `second` (or second_ids, with the decoder start token). Beyond the
  // context length the beginning is dropped, so that the prediction is still for the end.
  std::vector<Predicted> predict(const std::vector<TaskInput>& inputs,
                                 const PredictOptions& options = {},
                                 const std::function<bool()>& is_cancelled = {}) const;

 private:
  std::shared_ptr<TaskRunner> runner_;
};

// ---- Constituency trees: encoder-decoder models trained for parsing ----------------------------
//
//   heed::Parser parser(heed::Model::load("models/parser"));
//   parser.parse({"John has a dog ."})[0].tree;   // "(S (NP (NNP John)) (VP (VBZ has) …"
//
// The model writes a tree in its linear form (Vinyals et al. 2015), as `heed train` with the
// parsing objective teaches it; tags are XX if it was taught none. The output is repaired into a
// tree over exactly the words of the sentence: missing words are added and extra ones dropped.

struct Parsed {
  std::string tree{};      // in brackets, on one line; empty without words
  std::string linear{};    // the model's output
  double score = 0;        // of the search
  bool truncated = false;  // the sentence exceeded the context length
};

class Parser {
 public:
  // Throws unsupported for other models.
  explicit Parser(Model model, const EngineOptions& options = {});
  // With an engine that others use too.
  explicit Parser(std::shared_ptr<Engine> engine);

  // Sentences are words with white space between; brackets become -LRB- and -RRB-, as in the Penn
  // Treebank. `search`: nothing takes the model's own.
  // `is_cancelled` is as Engine::run() takes it.
  std::vector<Parsed> parse(const std::vector<std::string>& sentences,
                            const std::optional<SearchOptions>& search = {},
                            const std::function<bool()>& is_cancelled = {});

 private:
  std::shared_ptr<Engine> engine_;
};

}  // namespace heed
