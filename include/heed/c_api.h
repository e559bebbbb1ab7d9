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
// C99; the library is C++, so a program is linked with the C++ compiler or with the output of
// `pkg-config --libs heed`. The C++ header that a section names has the details.
//
// Errors. A function that can fail returns a heed_status. Unless that is HEED_OK, heed_last_error()
// has a message, the results are NULL and nothing has changed. NULL for a required argument is
// HEED_INVALID_ARGUMENT; a model of another kind is HEED_UNSUPPORTED. Nothing prints, aborts or
// exits.
//
// Ownership. The caller owns the result of the last argument: heed_free() frees it and all that it
// points to. Arguments are only read, and not kept. Texts are UTF-8; those in results end with a 0
// byte, which `bytes` does not count.
//
// Options. A struct of options is filled by its heed_…_init() and then changed; NULL means the
// values of init. New versions add members: recompile.
//
// Threads. Any number of threads may use a model at the same time: their requests are batched, and
// an answer does not depend on the batch. Signal handlers must have an alternate stack
// (sigaltstack, SA_ONSTACK) on threads that call this.
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
  HEED_INVALID_ARGUMENT,  // an invalid value, or NULL
  HEED_NOT_FOUND,         // a file, a name
  HEED_CORRUPT_FILE,      // a malformed file
  HEED_UNSUPPORTED,       // not implemented, or not for this model
  HEED_OUT_OF_MEMORY,     // of the machine, or a limit that was set
  HEED_CANCELLED,         // by a callback
  HEED_INTERNAL           // a bug in Heed
} heed_status;

// "ok", "not_found" and so on.
const char* heed_status_name(heed_status status);

typedef struct heed_error {
  heed_status status;
  const char* message;
  const char* hint;  // how to resolve it, in one line; may be ""
} heed_error;

// The last error of this thread; never NULL. Its texts are valid until the next error of this
// thread.
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
// No other thread may use the model any more; results stay valid. NULL is fine.
void heed_close(heed_model* model);

typedef struct heed_info {
  const char* folder;       // as passed to heed_open()
  const char* model_type;   // as in config.json: "marian"
  const char* family;       // "encoder_decoder", "encoder_only" or "decoder_only"
  const char* head;         // "language_model", "classifier", …
  const char* weight_type;  // "f32", "int8" …: of most of its weights
  int64_t parameters;
  int64_t weight_bytes;
  int64_t vocabulary;
  int64_t max_positions;  // context length
  int can_generate;       // and translate, if the family is encoder_decoder
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

// What a text is written in (heed/translate.h).
typedef enum heed_text_format {
  HEED_FORMAT_TEXT,
  HEED_FORMAT_HTML,
  HEED_FORMAT_MARKDOWN
} heed_text_format;

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
  double presence_penalty;       // is subtracted from the logits of generated tokens, once
  double frequency_penalty;      // the same, for each occurrence
  heed_logit_biases logit_bias;  // is added to the logits of these tokens
  heed_texts stop;               // strings that end the answer, which is cut before them
  heed_texts banned;             // texts that must not occur
  heed_texts required;           // texts that must occur (needs a beam)

  int sample;          // sample tokens by the five below; beam must be 1
  double temperature;  // 0: argmax
  int top_k;           // > 0: from the k most probable tokens
  double top_p;        // < 1: nucleus sampling
  double min_p;        // > 0: minimum probability, relative to the most probable token
  uint64_t seed;       // random seed; the functions below draw another one at each call

  // NULL or "": none.
  const char* prefix;           // beginning of the answer
  const char* source_language;  // multilingual models: "fr", or the token's name
  const char* target_language;
  // Translation only:
  const char* source_prefix;  // before every sentence: "translate English to German: "
  int split_sentences;
  heed_text_format format;  // its markup stays
} heed_options;

// The defaults of heed_generate(): those of the model's generation_config.json.
heed_status heed_options_init(heed_model* model, heed_options* options);
// The defaults of heed_translate(): the same, but beam 4 and length penalty 0.6 where that file
// names none.
heed_status heed_translate_options_init(heed_model* model, heed_options* options);

typedef enum heed_finish {
  HEED_FINISH_END,    // an end token; always for translation
  HEED_FINISH_STOP,   // a stop string
  HEED_FINISH_LENGTH  // the maximum length
} heed_finish;

typedef struct heed_text {
  const char* text;
  size_t bytes;
  double score;        // sum of log-probabilities, after the length penalty
  heed_finish finish;  // generation only
  int64_t new_tokens;  // generation only
} heed_text;

// Of one input: the n best, best first; at least one.
typedef struct heed_answer {
  const heed_text* texts;
  size_t count;
  int truncated;  // the input exceeded the context length
} heed_answer;

typedef struct heed_answers {
  const heed_answer* items;  // in the order of the inputs
  size_t count;
} heed_answers;

// Translates texts sentence by sentence.
heed_status heed_translate(heed_model* model, const char* const* texts, size_t count,
                           const heed_options* options, heed_answers** answers);
// Continues prompts; for an encoder-decoder model the prompt is its source.
heed_status heed_generate(heed_model* model, const char* const* prompts, size_t count,
                          const heed_options* options, heed_answers** answers);

// The next part of the answer. A value other than 0 ends the call with HEED_CANCELLED.
typedef int (*heed_on_text)(const char* text, size_t bytes, void* user);

// The same for one prompt, streamed to on_text on the calling thread. Only without a beam and with
// one answer. The pieces together are the text of *answers; `answers` may be NULL.
heed_status heed_generate_stream(heed_model* model, const char* prompt, const heed_options* options,
                                 heed_on_text on_text, void* user, heed_answers** answers);

// ---- Labels, vectors, probabilities (heed/tasks.h) ---------------------------------------------

typedef struct heed_label {
  int label;                    // argmax; -1: regression, or no token
  const char* name;             // its name; may be ""
  const double* probabilities;  // of every label; NULL for regression
  const float* logits;          // for regression, the scores
  size_t labels;                // their number
  int truncated;
} heed_label;

typedef struct heed_labels {
  const heed_label* items;
  size_t count;
} heed_labels;

// `seconds` has the second texts of pairs; NULL: no pairs.
heed_status heed_classify(heed_model* model, const char* const* texts, const char* const* seconds,
                          size_t count, heed_labels** labels);

typedef enum heed_pooling { HEED_MEAN, HEED_FIRST, HEED_LAST } heed_pooling;

// A text beyond the context length is …
typedef enum heed_long_text {
  HEED_TRUNCATE,  // truncated
  HEED_CHUNKS     // split; the vector is the mean of the chunks
} heed_long_text;

typedef struct heed_embed_options {
  heed_pooling pooling;  // of the token vectors
  int normalize;         // to length 1
  heed_long_text long_text;
  int64_t max_tokens;  // 0: context length
} heed_embed_options;

// The options of the model folder's sentence-transformers files.
heed_status heed_embed_options_init(heed_model* model, heed_embed_options* options);

typedef struct heed_vectors {
  const float* values;  // [count, width]
  size_t count, width;
} heed_vectors;

heed_status heed_embed(heed_model* model, const char* const* texts, size_t count,
                       const heed_embed_options* options, heed_vectors** vectors);

typedef struct heed_score_options {
  int64_t window;  // tokens of a window of a long text; 0: context length
  int64_t stride;  // tokens between windows; 0: half a window
  int begin;  // put the begin token (BOS) before the text, so that its first token is scored too
  int end;    // score the end token (EOS) too
} heed_score_options;

void heed_score_options_init(heed_score_options* options);

typedef struct heed_text_score {
  double log_probability;  // natural, the sum over the tokens
  double perplexity;
  const int32_t* ids;         // the scored tokens
  const float* token_scores;  // log p of each
  size_t tokens;
  int truncated;
} heed_text_score;

typedef struct heed_scores {
  const heed_text_score* items;
  size_t count;
} heed_scores;

// Log-probabilities of texts; encoder-decoder models: of `targets` given the texts. `targets` is
// NULL for other models.
heed_status heed_score(heed_model* model, const char* const* texts, const char* const* targets,
                       size_t count, const heed_score_options* options, heed_scores** scores);

// ---- Text and ids (heed/tokenizer.h) -----------------------------------------------------------

typedef struct heed_tokens {
  const int32_t* ids;
  const int64_t* begins;  // a token's bytes of the text: [begins[i], ends[i])
  const int64_t* ends;
  size_t count;
} heed_tokens;

// special_tokens: with those of the model's template.
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
  const char* out;       // output folder; NULL: the recipe's
  heed_texts set;        // "section.key=value", over the recipe
  const uint64_t* seed;  // NULL: the recipe's
  int64_t memory_bytes;  // > 0: memory limit, which sets the batch size
  int threads;           // 0: every CPU this process may use
  // Both are called on the calling thread, and may be NULL. `progress` is called after every step;
  // a value other than 0 ends the training: it saves, and returns HEED_OK with finished = 0.
  int (*progress)(const heed_train_progress* progress, void* user);
  void (*note)(const char* line, void* user);  // a line of the log
  void* user;
} heed_train_options;

void heed_train_options_init(heed_train_options* options);

typedef struct heed_metric {
  const char* name;  // "loss", "bleu", …
  double value;
} heed_metric;

typedef struct heed_trained {
  const char* folder;  // to heed_open()
  int64_t steps;       // in total
  int finished;        // 0: stopped before the end; the same call resumes
  double seconds;      // of training steps, in total
  int64_t tokens;
  double loss;                    // of the last step
  const heed_metric* validation;  // of the final model
  size_t metrics;                 // their number
  int64_t parameters;
} heed_trained;

// Trains by a recipe, a TOML file. The same call resumes from the last checkpoint.
heed_status heed_train(const char* recipe, const heed_train_options* options,
                       heed_trained** trained);

#ifdef __cplusplus
}
#endif

#endif
