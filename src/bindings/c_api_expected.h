// What the C++ API says, for a test that is written in C. Texts live until the next call of the
// same function.
#ifndef HEED_C_API_EXPECTED_H
#define HEED_C_API_EXPECTED_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// Whether the structs of options have no member without an option.
int structs_have_only_options(void);
// The alternative of that rank, with a beam of that width; beam 0: the model's own search.
const char* expected_translation(const char* folder, const char* text, int beam, size_t rank,
                                 double* score);
// What follows a prompt, drawn with this seed; seed 0: greedily.
const char* expected_generation(const char* folder, const char* prompt, uint64_t seed,
                                int64_t max_new_tokens, double* score);
// Copies as many numbers as there are into `numbers`, which has room for them.
size_t expected_embedding(const char* folder, const char* text, int normalize, float* numbers);
size_t expected_logits(const char* folder, const char* text, const char* second, float* numbers);
double expected_log_probability(const char* folder, const char* text, const char* target);
size_t expected_ids(const char* folder, const char* text, int32_t* ids);

#ifdef __cplusplus
}
#endif

#endif
