// Heed for C: translate, generate, classify, embed, score, and train.
//
//   heed_model* model = NULL;
//   heed_answers* answers = NULL;
//   const char* text = "Good morning.";
//   if (heed_open("models/en-de", NULL, &model) == HEED_OK &&
//       heed_translate(model, &text, 1, NULL, &answers) == HEED_OK) {
//     puts(answers->items[0].texts[0].text);
//   } else {
//     fprintf(stderr, "%s\n", heed_last_error()->message);
//   }
//   heed_free(answers);
//   heed_close(model);
//
// C99; the library itself is C++, so a program is linked with the C++ compiler or with what
// `pkg-config --libs heed` says. What a function does is told in full by the C++ header that its
// section names.
//
// Errors. A function that can fail returns a heed_status: HEED_OK, or what is wrong, and then
// heed_last_error() has a message. Its results are NULL then, and nothing has happened. NULL where
// something must be is HEED_INVALID_ARGUMENT; a model of another kind is HEED_UNSUPPORTED. Nothing
// prints, aborts or exits.
//
// Ownership. What comes out through the last argument is the caller's: heed_free() frees it, and
// all that it points to. What goes in is only read, and not kept. Texts are UTF-8; those that come
// out end with a 0, which `bytes` does not count.
//
// Options. A struct of options is filled by its heed_…_init(), then changed; NULL instead of one
// means what init would say. Structs get new fields in new versions: compile anew, and change
// nothing.
//
// Threads. A model may be used by any number of threads at once: what they ask at the same time is
// worked on together, and an answer does not depend on what else is asked. Signal handlers need a
// stack of their own (sigaltstack, SA_ONSTACK) on threads that call this.
#ifndef HEED_C_API_H
#define HEED_C_API_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// "0.1.0". The middle digit moves when old models stop loading.
const char* heed_version(void);

// ---- Errors (heed/error.h) ---------------------------------------------------------------------

typedef enum heed_status {
  HEED_OK,
  HEED_INVALID_ARGUMENT,  // the caller's mistake: a value, a NULL
  HEED_NOT_FOUND,         // a file, a name
  HEED_CORRUPT_FILE,      // a file whose content contradicts itself
  HEED_UNSUPPORTED,       // not something that Heed does, or not with this model
  HEED_OUT_OF_MEMORY,     // the machine's memory, or a limit that was set
  HEED_CANCELLED,         // a callback asked to stop
  HEED_INTERNAL           // a bug in Heed
} heed_status;

// "ok", "not_found" and so on.
const char* heed_status_name(heed_status status);

typedef struct heed_error {
  heed_status status;
  const char* message;
  const char* hint;  // what to do about it, as one line; "" when there is nothing to add
} heed_error;

// Of the last call on this thread that failed; never NULL. Its texts live until the next call on
// this thread that fails.
const heed_error* heed_last_error(void);

// Frees a result. NULL is fine.
void heed_free(const void* result);

// ---- Models (heed/model.h) ---------------------------------------------------------------------

typedef struct heed_model heed_model;

typedef struct heed_open_options {
  int threads;               // of each worker; 0: an equal share of all CPUs
  int workers;               // batches that run at the same time
  uint64_t kv_memory_bytes;  // memory of the KV cache
  int64_t max_sequences;     // sequences (beams counted) that decode at the same time
  int64_t batch_tokens;      // token rows of one forward pass, at most
  int scores;                // compute the scores of greedy and sampled answers
} heed_open_options;

void heed_open_options_init(heed_open_options* options);

// A model folder in Hugging Face's layout.
heed_status heed_open(const char* folder, const heed_open_options* options, heed_model** model);
// When no other thread uses it any more; its results stay. NULL is fine.
void heed_close(heed_model* model);

typedef struct heed_info {
  const char* folder;       // as it was opened
  const char* model_type;   // as in config.json: "marian"
  const char* family;       // "encoder_decoder", "encoder_only" or "decoder_only"
  const char* head;         // "language_model", "classifier", …
  const char* weight_type;  // "f32", "int8" …: of most of its weights
  int64_t parameters;
  int64_t weight_bytes;
  int64_t vocabulary;
  int64_t max_positions;  // the longest sequence that it has positions for, or was trained on
  int can_generate;       // and translate, with the family encoder_decoder
} heed_info;

heed_status heed_get_info(heed_model* model, heed_info** info);

// ---- Translate and generate (heed/engine.h, heed/search.h) -------------------------------------

// A list of texts, among options.
typedef struct heed_texts {
  const char* const* items;
  size_t count;
} heed_texts;

// Token biases, among options.
typedef struct heed_logit_bias {
  int32_t id;
  double bias;  // is added to the token's logit
} heed_logit_bias;
typedef struct heed_logit_biases {
  const heed_logit_bias* items;
  size_t count;
} heed_logit_biases;

// The divisor of a hypothesis's summed log-probability.
typedef enum heed_length_penalty_rule {
  HEED_POWER,  // length^p
  HEED_GNMT    // ((5 + length) / 6)^p
} heed_length_penalty_rule;

// When a beam search ends that has as many finished hypotheses as beams.
typedef enum heed_early_stopping {
  HEED_STOP_NO,    // when no live hypothesis, at its present length, would score better
  HEED_STOP_YES,   // at once
  HEED_STOP_NEVER  // when no live hypothesis could score better at any length
} heed_early_stopping;

// Search options (heed/search.h).
typedef struct heed_options {
  // beam = 1 without `sample` is greedy decoding.
  int beam;   // beam size
  int nbest;  // answers; at most `beam`, or any number of samples
  double length_penalty;
  heed_length_penalty_rule length_penalty_rule;
  heed_early_stopping early_stopping;
  int64_t min_new_tokens;
  int64_t max_new_tokens;  // 0: by the length of the source or the prompt
  int no_repeat_ngram;     // > 0: no n-gram of this size twice
  double repetition_penalty;
  heed_texts stop;      // strings that end the answer, which is cut before them
  heed_texts banned;    // texts that must not occur
  heed_texts required;  // texts that must occur (needs a beam)

  int sample;          // sample tokens by the five below; beam must be 1
  double temperature;  // 0: argmax
  int top_k;           // > 0: from the k most probable tokens
  double top_p;        // < 1: nucleus sampling
  double min_p;        // > 0: minimum probability, relative to the most probable token
  uint64_t seed;       // random seed

  // NULL or "": none.
  const char* prefix;           // beginning of the answer
  const char* source_language;  // multilingual models: "fr", or the token's name
  const char* target_language;
  // Translation only:
  const char* source_prefix;  // before every sentence: "translate English to German: "
  int split_sentences;
} heed_options;

// The defaults of heed_generate(): those of the model's generation_config.json.
heed_status heed_options_init(heed_model* model, heed_options* options);
// The defaults of heed_translate(): the same, but beam 4 and length penalty 0.6 where that file names
// none.
heed_status heed_translate_options_init(heed_model* model, heed_options* options);

typedef enum heed_finish {
  HEED_FINISH_END,    // the model ended the text; always of translation
  HEED_FINISH_STOP,   // a stop text came
  HEED_FINISH_LENGTH  // the greatest length was reached
} heed_finish;

typedef struct heed_text {
  const char* text;
  size_t bytes;
  double score;        // sum of log-probabilities, after the length penalty
  heed_finish finish;  // of generation
  int64_t new_tokens;  // likewise
} heed_text;

// To one input: the n best, best first; at least one.
typedef struct heed_answer {
  const heed_text* texts;
  size_t count;
  int truncated;  // the input was longer than the model reads, and was cut
} heed_answer;

typedef struct heed_answers {
  const heed_answer* items;  // in the order of the inputs
  size_t count;
} heed_answers;

// Whole texts: their sentences are translated one by one, and put back together.
heed_status heed_translate(heed_model* model, const char* const* texts, size_t count,
                           const heed_options* options, heed_answers** answers);
// What follows a prompt; of an encoder-decoder model, its answer to a source.
heed_status heed_generate(heed_model* model, const char* const* prompts, size_t count,
                          const heed_options* options, heed_answers** answers);

// The next characters of a text. Other than 0 ends the generation with HEED_CANCELLED.
typedef int (*heed_on_text)(const char* text, size_t bytes, void* user);

// The same of one prompt, told piece by piece on the calling thread while the text grows. Without a
// beam and with one answer only. The pieces are the text of *answers, which may be NULL.
heed_status heed_generate_stream(heed_model* model, const char* prompt, const heed_options* options,
                                 heed_on_text on_text, void* user, heed_answers** answers);

// ---- Labels, vectors, probabilities (heed/tasks.h) ---------------------------------------------

typedef struct heed_label {
  int label;                    // the likeliest; -1: of regression, or there was no token
  const char* name;             // its name; "" if there is none
  const double* probabilities;  // of every label; NULL for regression
  const float* logits;          // what the model gave; for regression, the scores
  size_t labels;                // how many there are of either
  int truncated;
} heed_label;

typedef struct heed_labels {
  const heed_label* items;
  size_t count;
} heed_labels;

// `seconds` has the other texts of pairs; NULL: there are none.
heed_status heed_classify(heed_model* model, const char* const* texts, const char* const* seconds,
                          size_t count, heed_labels** labels);

typedef enum heed_pooling { HEED_MEAN, HEED_FIRST, HEED_LAST } heed_pooling;

// What becomes of a text that is longer than the model reads.
typedef enum heed_long_text {
  HEED_TRUNCATE,  // its beginning is read
  HEED_CHUNKS     // all of it is, in parts; the vector is their mean
} heed_long_text;

typedef struct heed_embed_options {
  heed_pooling pooling;  // of the tokens' vectors
  int normalize;         // to length 1
  heed_long_text long_text;
  int64_t max_tokens;  // 0: as many as the model reads
} heed_embed_options;

// What the model folder's sentence-transformers files ask for.
heed_status heed_embed_options_init(heed_model* model, heed_embed_options* options);

typedef struct heed_vectors {
  const float* values;  // [count, width]
  size_t count, width;
} heed_vectors;

heed_status heed_embed(heed_model* model, const char* const* texts, size_t count,
                       const heed_embed_options* options, heed_vectors** vectors);

typedef struct heed_score_options {
  int64_t window;  // of long texts; 0: as many tokens as the model reads
  int64_t stride;  // between windows; 0: half of one
  int begin;       // begin with the token that begins texts, so that the first one has a score too
  int end;         // score the token that ends texts
} heed_score_options;

void heed_score_options_init(heed_score_options* options);

typedef struct heed_text_score {
  double log_probability;  // natural, the sum over the tokens
  double perplexity;
  const int32_t* ids;         // the tokens that have a probability
  const float* token_scores;  // theirs, log p
  size_t tokens;
  int truncated;
} heed_text_score;

typedef struct heed_scores {
  const heed_text_score* items;
  size_t count;
} heed_scores;

// How likely a language model finds a text; encoder-decoder models: `targets` given the texts.
// NULL of other models.
heed_status heed_score(heed_model* model, const char* const* texts, const char* const* targets,
                       size_t count, const heed_score_options* options, heed_scores** scores);

// ---- Text and ids (heed/tokenizer.h) -----------------------------------------------------------

typedef struct heed_tokens {
  const int32_t* ids;
  const int64_t* begins;  // the bytes of the text that are a token: [begins[i], ends[i])
  const int64_t* ends;
  size_t count;
} heed_tokens;

// special_tokens: with those that the model's own template adds.
heed_status heed_tokenize(heed_model* model, const char* text, int special_tokens,
                          heed_tokens** tokens);
heed_status heed_detokenize(heed_model* model, const int32_t* ids, size_t count,
                            int skip_special_tokens, heed_text** text);

// ---- Train (heed/train.h) ----------------------------------------------------------------------

typedef struct heed_train_progress {
  int64_t step, steps;
  double loss;  // of this step
  double learning_rate;
  double gradient_norm;  // before clipping
  double tokens_per_second;
  double remaining_seconds;
  uint64_t epoch;
} heed_train_progress;

typedef struct heed_train_options {
  const char* out;       // the folder to write; NULL: as the recipe says
  heed_texts set;        // "section.key=value", over the recipe
  const uint64_t* seed;  // NULL: the recipe's
  int64_t memory_bytes;  // > 0: the most to use; chooses the batch size
  int threads;           // 0: every CPU this process may use
  // Both are called on the calling thread, and may be NULL. Progress comes after every step; other
  // than 0 ends the training: it saves, and returns HEED_OK with finished = 0.
  int (*progress)(const heed_train_progress* progress, void* user);
  void (*note)(const char* line, void* user);  // about what is going on
  void* user;
} heed_train_options;

void heed_train_options_init(heed_train_options* options);

typedef struct heed_metric {
  const char* name;  // "loss", "bleu", …
  double value;
} heed_metric;

typedef struct heed_trained {
  const char* folder;  // to heed_open()
  int64_t steps;       // done, in all
  int finished;        // 0: stopped before the end; the same call goes on
  double seconds;      // spent in steps, in all
  int64_t tokens;
  double loss;                    // of the last step
  const heed_metric* validation;  // of the final model
  size_t metrics;                 // how many of them
  int64_t parameters;
} heed_trained;

// By a recipe, a TOML file. Running the same again goes on from the last checkpoint.
heed_status heed_train(const char* recipe, const heed_train_options* options,
                       heed_trained** trained);

#ifdef __cplusplus
}
#endif

#endif
