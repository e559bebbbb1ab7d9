/* The C API, from C: what it answers is what the C++ API says, and what is wrong is told.
 * Run by tests/cli/with_models, from the top of the tree. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bindings/c_api_expected.h"
#include "heed/c_api.h"

enum { MOST = 4096 };

static int failures = 0;

#define CHECK(condition)                                                                    \
  do {                                                                                      \
    if (!(condition)) {                                                                     \
      printf("%s:%d: does not hold: %s (last error: %s)\n", __FILE__, __LINE__, #condition, \
             heed_last_error()->message);                                                   \
      ++failures;                                                                           \
    }                                                                                       \
  } while (0)

/* For what the rest of a test stands on. */
#define REQUIRE(condition)          \
  do {                              \
    const int before = failures;    \
    CHECK(condition);               \
    if (failures > before) exit(1); \
  } while (0)

/* The last call has failed in this way, and says what and what to do. */
static int failed_with(heed_status found, heed_status wanted, const char* text) {
  const heed_error* error = heed_last_error();
  if (found == wanted && error->status == wanted && strstr(error->message, text) &&
      error->hint != NULL) {
    return 1;
  }
  printf("status %s, message '%s'\n", heed_status_name(found), error->message);
  return 0;
}

static const char* folder_of(const char* name) {
  static char folder[MOST];
  snprintf(folder, sizeof folder, "%s/%s", getenv("HEED_MODELS"), name);
  return folder;
}

static heed_model* open_model(const char* name) {
  heed_model* model = NULL;
  heed_open_options options;
  heed_open_options_init(&options);
  options.threads = 1;
  REQUIRE(heed_open(folder_of(name), &options, &model) == HEED_OK);
  return model;
}

static void test_names(void) {
  CHECK(strlen(heed_version()) >= strlen("0.0.0"));
  CHECK(strcmp(heed_status_name(HEED_OK), "ok") == 0);
  CHECK(strcmp(heed_status_name(HEED_CORRUPT_FILE), "corrupt_file") == 0);
  CHECK(strcmp(heed_status_name(HEED_INTERNAL), "internal") == 0);
  CHECK(strcmp(heed_status_name((heed_status)99), "unknown") == 0);
}

static void test_defaults(void) {
  CHECK(structs_have_only_options());
  heed_open_options open;
  memset(&open, 0xff, sizeof open);
  heed_open_options_init(&open);
  CHECK(open.threads == 0 && open.kv_memory_bytes == (uint64_t)1 << 30);
  CHECK(open.batch_tokens == 1024 && open.max_sequences == 256);
  CHECK(open.workers == 1 && open.scores == 1);
  heed_score_options score;
  memset(&score, 0xff, sizeof score);
  heed_score_options_init(&score);
  CHECK(score.window == 0 && score.stride == 0 && score.begin == 1 && score.end == 1);

  heed_model* model = open_model("marian");
  heed_options options;
  memset(&options, 0xff, sizeof options);
  CHECK(heed_options_init(model, &options) == HEED_OK);
  CHECK(options.beam >= 1 && options.nbest == 1 && options.sample == 0 && options.top_p == 1);
  CHECK(options.temperature == 1 && options.repetition_penalty == 1);
  CHECK(options.stop.count == 0 && options.required.items == NULL);
  CHECK(heed_translate_options_init(model, &options) == HEED_OK);
  CHECK(options.nbest == 1 && options.prefix == NULL && options.source_prefix == NULL &&
        options.split_sentences == 1 && options.format == HEED_FORMAT_TEXT);
  heed_close(model);
}

static void test_info(void) {
  heed_model* model = open_model("marian");
  heed_info* info = NULL;
  REQUIRE(heed_get_info(model, &info) == HEED_OK);
  heed_close(model); /* results outlive it */
  CHECK(strcmp(info->folder, folder_of("marian")) == 0);
  CHECK(strcmp(info->model_type, "marian") == 0);
  CHECK(strcmp(info->family, "encoder_decoder") == 0);
  CHECK(strcmp(info->head, "language_model") == 0);
  CHECK(strcmp(info->weight_type, "f32") == 0);
  CHECK(info->parameters > 1000 && info->weight_bytes >= 4 * info->parameters);
  CHECK(info->vocabulary == 100 && info->max_positions > 0 && info->can_generate == 1);
  heed_free(info);
}

static void test_translate(void) {
  heed_model* model = open_model("marian");
  const char* texts[] = {"The cat sat. A dog is fast.", "she lives in new york ."};
  heed_answers* answers = NULL;
  double score = 0;
  REQUIRE(heed_translate(model, texts, 2, NULL, &answers) == HEED_OK);
  REQUIRE(answers->count == 2);
  for (size_t i = 0; i < 2; ++i) {
    const char* wanted = expected_translation(folder_of("marian"), texts[i], 0, 0, &score);
    const heed_text* found = answers->items[i].texts;
    CHECK(strcmp(found->text, wanted) == 0 && found->bytes == strlen(wanted));
    CHECK(strlen(wanted) > 0 && found->score == score);
    CHECK(answers->items[i].truncated == 0);
  }
  heed_free(answers);

  heed_options options;
  CHECK(heed_options_init(model, &options) == HEED_OK);
  options.beam = options.nbest = 3;
  REQUIRE(heed_translate(model, texts, 1, &options, &answers) == HEED_OK);
  REQUIRE(answers->count == 1 && answers->items[0].count == 3);
  for (size_t rank = 0; rank < 3; ++rank) {
    const heed_text* found = &answers->items[0].texts[rank];
    const char* wanted = expected_translation(folder_of("marian"), texts[0], 3, rank, &score);
    CHECK(strcmp(found->text, wanted) == 0 && found->score == score);
  }
  heed_free(answers);

  /* Each of these must reach the search. */
  options.nbest = 1;
  options.max_new_tokens = 2;
  REQUIRE(heed_translate(model, &texts[1], 1, &options, &answers) == HEED_OK);
  expected_translation(folder_of("marian"), texts[1], 3, 0, &score);
  CHECK(answers->items[0].texts[0].score != score);
  heed_free(answers);
  options.max_new_tokens = 0;
  const char* banned[] = {"w22"};
  options.banned.items = banned;
  options.banned.count = 1;
  options.prefix = "the dog";
  REQUIRE(heed_translate(model, &texts[1], 1, &options, &answers) == HEED_OK);
  CHECK(strstr(answers->items[0].texts[0].text, "dog") != NULL);
  CHECK(strstr(answers->items[0].texts[0].text, "w22") == NULL);
  heed_free(answers);

  REQUIRE(heed_translate(model, NULL, 0, NULL, &answers) == HEED_OK);
  CHECK(answers->count == 0 && answers->items == NULL);
  heed_free(answers);
  heed_close(model);
}

struct Heard {
  char text[MOST];
  int pieces;
  int most; /* pieces, before it is enough */
};

static int on_text(const char* text, size_t bytes, void* user) {
  struct Heard* heard = user;
  if (strlen(text) != bytes) printf("a piece of other length than it says\n"), ++failures;
  strncat(heard->text, text, sizeof heard->text - strlen(heard->text) - 1);
  return ++heard->pieces >= heard->most;
}

static void test_generate(void) {
  heed_model* model = open_model("gpt2");
  const char* prompts[] = {"the cat", "a dog"};
  double score = 0;
  heed_options options;
  heed_answers* answers = NULL;
  CHECK(heed_options_init(model, &options) == HEED_OK);
  options.max_new_tokens = 8;
  REQUIRE(heed_generate(model, prompts, 2, &options, &answers) == HEED_OK);
  REQUIRE(answers->count == 2);
  for (size_t i = 0; i < 2; ++i) {
    const heed_text* found = answers->items[i].texts;
    CHECK(strcmp(found->text, expected_generation(folder_of("gpt2"), prompts[i], 0, 8, &score)) ==
          0);
    CHECK(found->score == score && found->new_tokens >= 1 && found->new_tokens <= 8);
    CHECK(found->finish == (found->new_tokens < 8 ? HEED_FINISH_END : HEED_FINISH_LENGTH));
  }

  /* The same, piece by piece. */
  struct Heard heard = {"", 0, MOST};
  heed_answers* streamed = NULL;
  REQUIRE(heed_generate_stream(model, prompts[0], &options, on_text, &heard, &streamed) == HEED_OK);
  CHECK(strcmp(heard.text, answers->items[0].texts[0].text) == 0);
  CHECK(strcmp(heard.text, streamed->items[0].texts[0].text) == 0);
  CHECK(heard.pieces >= 2);
  heed_free(streamed);

  /* A text that occurs ends it. */
  const char* stop[] = {" "};
  options.stop.items = stop;
  options.stop.count = 1;
  REQUIRE(heed_generate_stream(model, prompts[0], &options, on_text, &heard, &streamed) == HEED_OK);
  CHECK(streamed->items[0].texts[0].finish == HEED_FINISH_STOP);
  CHECK(strlen(streamed->items[0].texts[0].text) < strlen(answers->items[0].texts[0].text));
  heed_free(streamed);
  heed_free(answers);
  options.stop.count = 0;

  /* Drawn, by seed. */
  options.sample = 1;
  options.temperature = 1.5;
  options.top_k = 20;
  for (options.seed = 1; options.seed <= 3; ++options.seed) {
    REQUIRE(heed_generate(model, prompts, 1, &options, &answers) == HEED_OK);
    CHECK(strcmp(answers->items[0].texts[0].text,
                 expected_generation(folder_of("gpt2"), prompts[0], options.seed, 8, &score)) == 0);
    heed_free(answers);
  }

  /* A callback that has heard enough. */
  struct Heard little = {"", 0, 1};
  CHECK(failed_with(heed_generate_stream(model, prompts[0], &options, on_text, &little, &answers),
                    HEED_CANCELLED, "on_text"));
  CHECK(little.pieces == 1 && answers == NULL);
  CHECK(heed_generate_stream(model, prompts[0], &options, on_text, &heard, NULL) == HEED_OK);
  options.sample = 0;
  options.beam = 2;
  CHECK(failed_with(heed_generate_stream(model, prompts[0], &options, on_text, &heard, &answers),
                    HEED_INVALID_ARGUMENT, "beam 2"));
  heed_close(model);
}

static void test_tasks(void) {
  static float wanted[MOST];
  const char *text = "the cat sat .", *second = "a dog";
  heed_model* model = open_model("bert-classify");
  heed_labels* labels = NULL;
  REQUIRE(heed_classify(model, &text, &second, 1, &labels) == HEED_OK);
  size_t n = expected_logits(folder_of("bert-classify"), text, second, wanted);
  REQUIRE(labels->count == 1 && labels->items[0].labels == n && n > 1);
  CHECK(memcmp(labels->items[0].logits, wanted, n * sizeof wanted[0]) == 0);
  double sum = 0;
  for (size_t i = 0; i < n; ++i) sum += labels->items[0].probabilities[i];
  CHECK(fabs(sum - 1) < 1e-9);
  CHECK(labels->items[0].label >= 0 && strlen(labels->items[0].name) > 0);
  heed_free(labels);
  REQUIRE(heed_classify(model, &text, NULL, 1, &labels) == HEED_OK);
  expected_logits(folder_of("bert-classify"), text, NULL, wanted);
  CHECK(memcmp(labels->items[0].logits, wanted, n * sizeof wanted[0]) == 0);
  heed_free(labels);
  heed_close(model);

  model = open_model("bert");
  const char* texts[] = {"the cat", "she lives in new york ."};
  heed_embed_options options;
  heed_vectors* vectors = NULL;
  CHECK(heed_embed_options_init(model, &options) == HEED_OK);
  CHECK(options.normalize == 1 && options.pooling == HEED_MEAN);
  for (options.normalize = 0; options.normalize <= 1; ++options.normalize) {
    REQUIRE(heed_embed(model, texts, 2, options.normalize ? NULL : &options, &vectors) == HEED_OK);
    REQUIRE(vectors->count == 2);
    for (size_t i = 0; i < 2; ++i) {
      n = expected_embedding(folder_of("bert"), texts[i], options.normalize, wanted);
      REQUIRE(vectors->width == n);
      CHECK(memcmp(vectors->values + i * n, wanted, n * sizeof wanted[0]) == 0);
    }
    heed_free(vectors);
  }
  heed_close(model);

  model = open_model("gpt2");
  heed_scores* scores = NULL;
  REQUIRE(heed_score(model, &text, NULL, 1, NULL, &scores) == HEED_OK);
  const heed_text_score* score = scores->items;
  CHECK(score->log_probability == expected_log_probability(folder_of("gpt2"), text, NULL));
  sum = 0;
  for (size_t i = 0; i < score->tokens; ++i) sum += score->token_scores[i];
  CHECK(score->tokens > 2 && fabs(sum - score->log_probability) < 1e-4);
  CHECK(fabs(score->perplexity - exp(-sum / (double)score->tokens)) < 1e-3 * score->perplexity);
  heed_free(scores);
  heed_close(model);

  model = open_model("marian");
  REQUIRE(heed_score(model, &text, &second, 1, NULL, &scores) == HEED_OK);
  CHECK(scores->items[0].log_probability ==
        expected_log_probability(folder_of("marian"), text, second));
  heed_free(scores);
  heed_close(model);
}

static void test_tokenize(void) {
  heed_model* model = open_model("bert");
  static int32_t wanted[MOST];
  const char* text = "the dogs sat .";
  heed_tokens* tokens = NULL;
  heed_text* back = NULL;
  REQUIRE(heed_tokenize(model, text, 1, &tokens) == HEED_OK);
  REQUIRE(tokens->count == expected_ids(folder_of("bert"), text, wanted));
  CHECK(memcmp(tokens->ids, wanted, tokens->count * sizeof wanted[0]) == 0);
  REQUIRE(heed_detokenize(model, tokens->ids, tokens->count, 1, &back) == HEED_OK);
  CHECK(strcmp(back->text, text) == 0 && back->bytes == strlen(text));
  heed_free(back);
  REQUIRE(heed_detokenize(model, tokens->ids, tokens->count, 0, &back) == HEED_OK);
  CHECK(strstr(back->text, "[CLS]") != NULL);
  heed_free(back);
  const size_t with_specials = tokens->count;
  heed_free(tokens);

  REQUIRE(heed_tokenize(model, text, 0, &tokens) == HEED_OK);
  CHECK(tokens->count + 2 == with_specials);
  CHECK(strncmp(text + tokens->begins[1], "dog", (size_t)(tokens->ends[1] - tokens->begins[1])) ==
        0);
  heed_free(tokens);

  const int32_t unknown = 1000;
  CHECK(failed_with(heed_detokenize(model, &unknown, 1, 1, &back), HEED_INVALID_ARGUMENT, "1000"));
  CHECK(back == NULL);
  heed_close(model);
}

static int notes = 0;

static void on_note(const char* line, void* user) {
  (void)user;
  notes += strlen(line) > 0;
}

/* Ends after as many steps as `user` says. */
static int on_step(const heed_train_progress* progress, void* user) {
  CHECK(progress->steps == 4 && progress->loss > 0 && progress->tokens_per_second > 0);
  return progress->step >= *(const int*)user;
}

static void test_train(void) {
  char out[MOST];
  snprintf(out, sizeof out, "%s/trained", getenv("HEED_MODELS"));
  const char* set[] = {"train.log_every=2", "validate.every=4"};
  const uint64_t seed = 7;
  int most = 2;
  heed_train_options options;
  heed_train_options_init(&options);
  options.out = out;
  options.set.items = set;
  options.set.count = 2;
  options.seed = &seed;
  options.threads = 1;
  options.progress = on_step;
  options.note = on_note;
  options.user = &most;
  heed_trained* trained = NULL;
  REQUIRE(heed_train("tests/golden/train/tiny.toml", &options, &trained) == HEED_OK);
  CHECK(trained->finished == 0 && trained->steps == 2 && notes > 0);
  heed_free(trained);
  most = 100;
  REQUIRE(heed_train("tests/golden/train/tiny.toml", &options, &trained) == HEED_OK);
  CHECK(trained->finished == 1 && trained->steps == 4 && trained->parameters > 1000);
  double loss = 0;
  for (size_t i = 0; i < trained->metrics; ++i) {
    if (strcmp(trained->validation[i].name, "loss") == 0) loss = trained->validation[i].value;
  }
  CHECK(loss > 0);

  heed_model* model = NULL;
  REQUIRE(heed_open(trained->folder, NULL, &model) == HEED_OK);
  heed_answers* answers = NULL;
  const char* prompt = "To be";
  CHECK(heed_generate(model, &prompt, 1, NULL, &answers) == HEED_OK);
  heed_free(answers);
  heed_close(model);
  heed_free(trained);

  const char* wrong[] = {"train.stepz=2"};
  options.set.items = wrong;
  options.set.count = 1;
  CHECK(failed_with(heed_train("tests/golden/train/tiny.toml", &options, &trained),
                    HEED_INVALID_ARGUMENT, "stepz"));
  CHECK(failed_with(heed_train("no/such.toml", NULL, &trained), HEED_NOT_FOUND, "no/such.toml"));
  CHECK(trained == NULL);
}

static void test_mistakes(void) {
  heed_model* model = NULL;
  heed_answers* answers = NULL;
  CHECK(failed_with(heed_open("no/such/folder", NULL, &model), HEED_NOT_FOUND, "no/such/folder"));
  CHECK(model == NULL);
  CHECK(
      failed_with(heed_open(NULL, NULL, &model), HEED_INVALID_ARGUMENT, "folder must not be NULL"));
  CHECK(failed_with(heed_open("somewhere", NULL, NULL), HEED_INVALID_ARGUMENT,
                    "model must not be NULL"));
  heed_close(NULL);
  heed_free(NULL);
  heed_open_options_init(NULL);
  heed_score_options_init(NULL);
  heed_train_options_init(NULL);

  const char* text = "the cat";
  const char* texts[] = {"the cat", NULL};
  heed_options options;
  heed_embed_options embed_options;
  heed_info* info = NULL;
  heed_labels* labels = NULL;
  heed_vectors* vectors = NULL;
  heed_scores* scores = NULL;
  heed_tokens* tokens = NULL;
  heed_text* back = NULL;
  heed_trained* trained = NULL;
  const heed_status wrong = HEED_INVALID_ARGUMENT;
  const char* no_model = "model must not be NULL";
  CHECK(failed_with(heed_get_info(NULL, &info), wrong, no_model));
  CHECK(failed_with(heed_options_init(NULL, &options), wrong, no_model));
  CHECK(failed_with(heed_translate(NULL, &text, 1, NULL, &answers), wrong, no_model));
  CHECK(failed_with(heed_generate(NULL, &text, 1, NULL, &answers), wrong, no_model));
  CHECK(failed_with(heed_generate_stream(NULL, text, NULL, on_text, NULL, &answers), wrong,
                    no_model));
  CHECK(failed_with(heed_classify(NULL, &text, NULL, 1, &labels), wrong, no_model));
  CHECK(failed_with(heed_embed_options_init(NULL, &embed_options), wrong, no_model));
  CHECK(failed_with(heed_embed(NULL, &text, 1, NULL, &vectors), wrong, no_model));
  CHECK(failed_with(heed_score(NULL, &text, NULL, 1, NULL, &scores), wrong, no_model));
  CHECK(failed_with(heed_tokenize(NULL, text, 1, &tokens), wrong, no_model));
  CHECK(failed_with(heed_detokenize(NULL, NULL, 0, 1, &back), wrong, no_model));
  CHECK(failed_with(heed_train(NULL, NULL, &trained), wrong, "recipe must not be NULL"));

  model = open_model("marian");
  CHECK(failed_with(heed_get_info(model, NULL), wrong, "info must not be NULL"));
  CHECK(failed_with(heed_options_init(model, NULL), wrong, "options must not be NULL"));
  CHECK(
      failed_with(heed_translate(model, &text, 1, NULL, NULL), wrong, "answers must not be NULL"));
  CHECK(failed_with(heed_translate(model, NULL, 1, NULL, &answers), wrong,
                    "text 1 of 1 must not be NULL"));
  CHECK(failed_with(heed_translate(model, texts, 2, NULL, &answers), wrong,
                    "text 2 of 2 must not be NULL"));
  CHECK(failed_with(heed_generate(model, texts, 2, NULL, &answers), wrong,
                    "text 2 of 2 must not be NULL"));
  CHECK(failed_with(heed_generate_stream(model, NULL, NULL, on_text, NULL, NULL), wrong,
                    "prompt must not be NULL"));
  CHECK(failed_with(heed_generate_stream(model, text, NULL, NULL, NULL, NULL), wrong,
                    "on_text must not be NULL"));
  CHECK(failed_with(heed_embed(model, &text, 1, NULL, NULL), wrong, "vectors must not be NULL"));
  CHECK(failed_with(heed_tokenize(model, NULL, 1, &tokens), wrong, "text must not be NULL"));
  CHECK(failed_with(heed_detokenize(model, NULL, 1, 1, &back), wrong, "ids must not be NULL"));
  CHECK(failed_with(heed_score(model, &text, NULL, 1, NULL, &scores), wrong, ""));

  CHECK(heed_options_init(model, &options) == HEED_OK);
  options.nbest = 5;
  options.beam = 2;
  CHECK(failed_with(heed_translate(model, &text, 1, &options, &answers), wrong, "nbest"));
  CHECK(heed_options_init(model, &options) == HEED_OK);
  options.early_stopping = (heed_early_stopping)7;
  CHECK(failed_with(heed_translate(model, &text, 1, &options, &answers), wrong, "early_stopping"));
  CHECK(heed_options_init(model, &options) == HEED_OK);
  options.stop.count = 1;
  CHECK(failed_with(heed_generate(model, &text, 1, &options, &answers), wrong, "stop"));
  CHECK(failed_with(heed_classify(model, &text, NULL, 1, &labels), HEED_UNSUPPORTED, "head"));
  CHECK(answers == NULL && labels == NULL && vectors == NULL && scores == NULL);
  heed_close(model);

  model = open_model("bert");
  CHECK(failed_with(heed_translate(model, &text, 1, NULL, &answers), HEED_UNSUPPORTED,
                    "encoder_only"));
  CHECK(failed_with(heed_generate(model, &text, 1, NULL, &answers), HEED_UNSUPPORTED,
                    "encoder_only"));
  CHECK(failed_with(heed_score(model, &text, NULL, 1, NULL, &scores), HEED_UNSUPPORTED, ""));
  heed_close(model);
  model = open_model("gpt2");
  CHECK(failed_with(heed_translate(model, &text, 1, NULL, &answers), HEED_UNSUPPORTED,
                    "decoder_only"));
  heed_close(model);
}

/* Errors are per thread; a model is shared. */
static void* ask_elsewhere(void* model) {
  heed_model* none = NULL;
  CHECK(heed_last_error()->status == HEED_OK);
  CHECK(failed_with(heed_open("no/such/other", NULL, &none), HEED_NOT_FOUND, "no/such/other"));
  const char* text = "the cat sat .";
  heed_answers* answers = NULL;
  return heed_translate(model, &text, 1, NULL, &answers) == HEED_OK ? answers : NULL;
}

static void test_threads(void) {
  heed_model* model = open_model("marian");
  heed_model* none = NULL;
  pthread_t threads[4];
  double score = 0;
  CHECK(failed_with(heed_open("no/such/folder", NULL, &none), HEED_NOT_FOUND, "no/such/folder"));
  for (size_t i = 0; i < 4; ++i) {
    REQUIRE(pthread_create(&threads[i], NULL, ask_elsewhere, model) == 0);
  }
  const char* wanted = expected_translation(folder_of("marian"), "the cat sat .", 0, 0, &score);
  for (size_t i = 0; i < 4; ++i) {
    void* answers = NULL;
    pthread_join(threads[i], &answers);
    REQUIRE(answers != NULL);
    CHECK(strcmp(((heed_answers*)answers)->items[0].texts[0].text, wanted) == 0);
    heed_free(answers);
  }
  CHECK(strstr(heed_last_error()->message, "no/such/folder") != NULL);
  heed_close(model);
}

int main(void) {
  REQUIRE(getenv("HEED_MODELS") != NULL);
  test_names();
  test_defaults();
  test_info();
  test_translate();
  test_generate();
  test_tasks();
  test_tokenize();
  test_train();
  test_mistakes();
  test_threads();
  printf("%d failures\n", failures);
  return failures > 0;
}
