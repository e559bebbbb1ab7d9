// Softmax, log-sum-exp, and the losses that are built on them.
//
// A row's result depends on that row alone, bit for bit. An entry of -infinity has probability 0.
#pragma once

#include <cstdint>

namespace heed::kernels {

// y = e^x / sum(e^x) over x [n]. y may equal x. A row of nothing but -infinity gives zeros.
void softmax(const float* x, float* y, int64_t n);

// log(sum(e^x)); -infinity for a row of nothing else.
float log_sum_exp(const float* x, int64_t n);

// The loss of predicting a label from a row of logits, with label smoothing (Szegedy et al., 2016):
//   loss = (1 - label_smoothing) * -log p[label] + label_smoothing * average(-log p),
// where p = softmax(z) and z = logits, or soft_cap * tanh(logits / soft_cap) if soft_cap > 0.
// A negative label means "ignore this row": its loss and its gradient are 0.
struct CrossEntropy {
  float* logits;  // [rows, cols], rows `stride` apart
  int64_t stride;
  const int32_t* labels;  // [rows], below cols
  float label_smoothing = 0;
  float soft_cap = 0;
  float gradient_scale = 1;
  bool gradient = false;  // replace the logits by d(loss)/d(logits) * gradient_scale
  float* loss;            // [rows]
  int64_t rows, cols;
};
void cross_entropy(const CrossEntropy& args);

// Distillation loss (Hinton et al., 2015), with p = softmax(logits / T):
//   loss = T^2 * sum(p_teacher * (log p_teacher - log p_student)).
struct KlDivergence {
  float* student;        // logits [rows, cols], rows `stride` apart
  const float* teacher;  // likewise
  int64_t stride;
  float temperature = 1;
  float gradient_scale = 1;
  bool gradient = false;  // replace `student` by d(loss)/d(student) * gradient_scale
  float* loss;            // [rows]
  int64_t rows, cols;
};
void kl_divergence(const KlDivergence& args);

// R-Drop (Wu et al. 2021): two forward passes of one input with different dropout, each with a
// cross-entropy loss, and their symmetric KL divergence. p and q are the softmax of the two:
//   loss       = cross_entropy(p) + cross_entropy(q), with label smoothing as above,
//   divergence = (sum(p * log(p / q)) + sum(q * log(q / p))) / 2.
// A negative label means "ignore this row": all of it is 0.
struct TwinCrossEntropy {
  float *first, *second;  // logits [rows, cols], rows `stride` apart
  int64_t stride;
  const int32_t* labels;  // [rows], below cols
  float label_smoothing = 0;
  float divergence_weight = 1;
  float gradient_scale = 1;
  // Replace both by the gradient of loss + divergence_weight * divergence, times gradient_scale.
  bool gradient = false;
  float* loss;        // [rows]
  float* divergence;  // [rows]
  int64_t rows, cols;
};
void twin_cross_entropy(const TwinCrossEntropy& args);

}  // namespace heed::kernels
