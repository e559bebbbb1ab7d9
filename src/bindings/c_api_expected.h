// Results of the C++ API, for a test in C. Texts are valid until the next call of the same
// function.
#ifndef HEED_C_API_EXPECTED_H
#define HEED_C_API_EXPECTED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Whether the structs of options have no member without an option.
int structs_have_only_options(void);
// The alternative of that rank, with that beam size; beam 0: the default search.
const char* expected_translation(const char* folder, const char* text, int beam, size_t rank,
                                 double* score);
// The answer to a prompt, sampled with this seed; seed 0: greedy.
const char* expected_generation(const char* folder, const char* prompt, uint64_t seed,
                                int64_t max_new_tokens, double* score);
// Copies the result into `numbers`, which is large enough, and returns its size.
size_t expected_embedding(const char* folder, const char* text, int normalize, float* numbers);
size_t expected_logits(const char* folder, const char* text, const char* second, float* numbers);
double expected_log_probability(const char* folder, const char* text, const char* target);
size_t expected_ids(const char* folder, const char* text, int32_t* ids);

#ifdef __cplusplus
}
#endif

#endif
