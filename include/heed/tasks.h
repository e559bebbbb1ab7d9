// What a model answers besides text: labels, tags, vectors, missing words, probabilities.
//
//   heed::Model model = heed::Model::load("models/sentiment");
//   heed::Classifier classifier(model);
//   std::string label = classifier.classify({{.text = "A fine film."}})[0].name;
//
// Every class takes many inputs at once: it sorts them by length, runs them in batches of a budget
// of tokens, and gives the results in the order of the inputs. A result never depends on what else
// is in the batch, or on the number of threads: the same bits alone and among a thousand. An object
// may be used from several threads, whose calls take turns. `is_cancelled`, if given, is asked on
// the calling thread, before each batch and now and then within one: when it says so, the call
// throws cancelled.
//
// A text that is longer than the model reads is cut at its end, and its result says so. An input
// that has no tokens at all (an empty text, of a model whose template adds nothing) has a result
// with tokens == 0 and nothing else in it.
//
// Errors: constructors throw unsupported when the model has another head, or is of another family,
// than the task needs; calls throw what the tokenizer throws when text is given and there is none,
// and invalid_argument for inputs that make no sense.
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

// A text; or two that belong together; or raw ids, with all that the model's template adds.
struct TaskInput {
  std::string text{};
  std::optional<std::string> second{};
  std::vector<int32_t> ids{};         // not empty: instead of the texts
  std::vector<int32_t> types{};       // of raw ids; empty: all 0
  std::vector<int32_t> second_ids{};  // raw ids of the target, where a task has one
};

struct TaskOptions {
  int threads = 0;              // 0: every CPU this process may use
  int64_t batch_tokens = 4096;  // of one run of the model; a longer text runs alone
  int64_t max_tokens = 0;       // what is longer is cut; 0: as many as the model reads
};

struct TaskResult {
  int64_t tokens = 0;      // that the model has read, the template's included
  bool truncated = false;  // the input had more of them
};

// ---- Missing words: masked language models -----------------------------------------------------

struct FillOptions {
  int top = 5;                       // candidates for each mask
  std::optional<int32_t> mask_id{};  // nothing: the tokenizer's
  int64_t first_number = 1;          // what messages call the first input: its line, say
};

struct Candidate {
  int32_t id = -1;
  std::string piece{};  // as the vocabulary spells it: "##ing"; empty without a tokenizer
  std::string text{};   // as the text would: "ing"
  double probability = 0;
};

struct FilledMask {
  int64_t token = 0;                    // its place among the ids
  TextSpan span{};                      // its place in Filled::source
  std::vector<Candidate> candidates{};  // best first
};

struct Filled : TaskResult {
  std::string source{};  // the text as it was read: with the tokenizer's own mask
  std::string text{};    // the same with the best candidate for each mask
  std::vector<FilledMask> masks{};
};

class Filler {
 public:
  explicit Filler(Model model, const TaskOptions& options = {});
  // A mask is written as the tokenizer's own, as [MASK] or as <mask>. A text without one throws
  // invalid_argument, unless it is empty: then it has no masks.
  std::vector<Filled> fill(const std::vector<TaskInput>& inputs, const FillOptions& options = {},
                           const std::function<bool()>& is_cancelled = {}) const;

 private:
  std::shared_ptr<TaskRunner> runner_;
};

// ---- Labels of texts: classifiers and regression -----------------------------------------------

struct Classified : TaskResult {
  int label = -1;                       // the likeliest; -1: of regression, or there was no input
  std::string name{};                   // its name
  std::vector<double> probabilities{};  // of every label; empty for regression
  std::vector<float> logits{};          // what the model gave; for regression, the scores
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

// ---- Labels of words: token classifiers --------------------------------------------------------

// How spans ("New York" is a place) are made of labels like B-LOC and I-LOC.
enum class Aggregation {
  first,   // of words, each with the label of its first token: no span ends inside a word
  simple,  // of tokens
};

struct TagOptions {
  Aggregation aggregation = Aggregation::first;
  bool logits = false;  // keep them in the result
};

struct TaggedWord {
  TextSpan span{};  // of the text; words are what white space separates
  int label = -1;   // -1: the tokenizer has no token for it, or the text was cut before it
  std::string name{};
  double probability = 0;
};

struct TaggedSpan {
  TextSpan span{};
  std::string name{};      // without B- or I-
  double probability = 0;  // the mean of its parts'
};

struct Tagged : TaskResult {
  std::vector<TaggedWord> words{};  // none for raw ids
  std::vector<TaggedSpan> spans{};  // of labels other than O
  std::vector<float> logits{};      // [tokens, labels], when asked for
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

// ---- Vectors of texts: every model -------------------------------------------------------------

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

// What a model folder's sentence-transformers files (modules.json, 1_Pooling/config.json,
// sentence_bert_config.json) ask for; the defaults where there are none. Throws corrupt_file, or
// unsupported for what Heed does not do.
EmbedOptions embed_options(const std::string& folder);

struct Embedded : TaskResult {
  std::vector<float> vector{};  // zeros when there was no token
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

// The cosine of the angle between two vectors of one width; 0 when one is all zeros.
double cosine_similarity(const std::vector<float>& a, const std::vector<float>& b);
// Writes vectors of one width as a tensor "embeddings" [inputs, width].
void write_embeddings(const std::string& path, const std::vector<std::vector<float>>& vectors);

// ---- Probabilities of texts: language models ---------------------------------------------------

// A text with more tokens than the model reads is scored in windows: each begins `stride` tokens
// after the last, and scores what the last did not, so that a token has at least
// window - stride tokens before it.
struct ScoreOptions {
  int64_t window = 0;  // 0: as many tokens as the model reads
  int64_t stride = 0;  // 0: half the window
  // Decoder-only models: begin with the token that begins texts (when there is one), so that the
  // first token of the text has a probability too.
  bool begin = true;
  // Score the token that the tokenizer puts at the end of a text (when there is one). A model whose
  // training text had no ends finds it all but impossible.
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
  std::vector<int32_t> ids{};         // the tokens that have a probability
  std::vector<float> token_scores{};  // theirs, log p
  std::vector<TextSpan> offsets{};    // theirs in the text (the target); empty for raw ids

  double perplexity() const;  // e^(-log_probability / tokens); 1 when there are none
};

class Scorer {
 public:
  // Models with a decoder and a language model's head.
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
  int top = 5;             // candidates for each place
  bool everywhere = true;  // false: only after the last token
  double temperature = 1;  // that the candidates' probabilities are taken at; above 0
};

struct Predicted : TaskResult {
  std::vector<int32_t>
      ids{};  // as the decoder reads them: its start or the text's first token first
  // log p of each id, given those before it; one fewer than ids, for nothing comes before the
  // first. Empty unless everywhere.
  std::vector<float> token_scores{};
  // The likeliest tokens after ids[0], after ids[1], …; only the last of them unless everywhere.
  std::vector<std::vector<Candidate>> next{};
};

class Predictor {
 public:
  explicit Predictor(Model model, const TaskOptions& options = {});
  // Decoder-only models read the text (or ids); encoder-decoder models the text, and `second` (or
  // second_ids, with the decoder's start) as far as the target is written. What is longer than the
  // model reads loses its beginning, so that what comes next still is what is asked.
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
// The model writes a tree in its linear form (Vinyals et al. 2015), as `heed train` with the parsing objective teaches
// it; tags are XX if it was taught none. The output is repaired into a tree over exactly the words of the sentence:
// missing words are added and extra ones dropped.

struct Parsed {
  std::string tree{};      // in brackets, on one line; empty when there were no words
  std::string linear{};    // as the model wrote it
  double score = 0;        // of the search
  bool truncated = false;  // the sentence was longer than the model reads
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
